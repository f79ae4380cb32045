# SPDX-License-Identifier: Apache-2.0
# Made by tools/make_lessons.py from docs/learn/10-tag.md: do not edit.

# What is easy
def spans(tags):
    """Of B, I and O: {(first word, behind the last, type)}."""
    found, begin = set(), None
    for n, tag in enumerate([*tags, "O"]):
        if begin is not None and not tag.startswith("I-"):
            found.add((begin, n, tags[begin][2:]))
            begin = None
        if tag.startswith("B-"):
            begin = n
    return found

with open("said.conll", encoding="utf-8") as file:
    rows = [[line.split("\t") for line in block.split("\n")] for block in file.read().strip().split("\n\n")]
right = predicted = true = 0
for sentence in rows:  # word, true tag, predicted tag
    told, meant = spans([row[-1] for row in sentence]), spans([row[1] for row in sentence])
    right, predicted, true = right + len(told & meant), predicted + len(told), true + len(meant)
precision, recall = right / predicted, right / true
print(f"precision {precision:.4f}, recall {recall:.4f}, F1 {2 * precision * recall / (precision + recall):.4f}")

# The words of Chinese
with open("train.seg", encoding="utf-8") as file:
    lexicon = set(file.read().split())

def longest_first(text):
    words = []
    while text:
        n = next((n for n in range(len(text), 1, -1) if text[:n] in lexicon), 1)
        words.append(text[:n])
        text = text[n:]
    return " ".join(words)

with open("test.seg", encoding="utf-8") as file:
    lines = file.read().splitlines()
same = sum(longest_first(line.replace(" ", "")) == " ".join(line.split()) for line in lines)
print(longest_first("研究生命的起源"), "|", f"{same} of {len(lines)} sentences right")
