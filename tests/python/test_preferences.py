# SPDX-License-Identifier: Apache-2.0
"""What `fovea eval --preferences` says of two models of transformers, beside PyTorch in float64: rewards of answers, and the numbers that TRL's
DPOTrainer logs of them."""

import json
import pathlib
import tempfile
import unittest

try:
    import tokenizers
    import torch
    import transformers
except ImportError as error:
    raise unittest.SkipTest(f"{error.name} is not installed: preferences are not compared") from error

import support

MARKS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
CHATML = ("{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}"
          "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}")
PAIRS = [("Where?", "There.", "Who knows"), ("Say it twice, please", "it it", "it"), ("Ünï?", "中文 😀", "?"), ("a", "b " * 20, "c"),
         ("What is attention?", "A sum of values with weights that sum to one.", "The weights alone, don't they?")]


class PreferencesTest(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        self.data = self.folder / "pairs.jsonl"
        self.data.write_text("".join(json.dumps({"prompt": p, "chosen": c, "rejected": r}) + "\n" for p, c, r in PAIRS), encoding="utf-8")

    def save(self, name, seed):
        tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
        tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
        tokenizer.decoder = tokenizers.decoders.ByteLevel()
        trainer = tokenizers.trainers.BpeTrainer(vocab_size=320, special_tokens=MARKS, show_progress=False,
                                                 initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet())
        tokenizer.train_from_iterator([(support.ROOT / "docs/DESIGN.md").read_text(encoding="utf-8")], trainer)
        self.tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|im_end|>")
        self.tokenizer.chat_template = CHATML
        folder = self.folder / name
        self.tokenizer.save_pretrained(folder)
        torch.manual_seed(seed)
        model = transformers.LlamaForCausalLM(transformers.LlamaConfig(
            vocab_size=tokenizer.get_vocab_size(), hidden_size=32, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
            intermediate_size=48, max_position_embeddings=128, initializer_range=0.3, bos_token_id=0, eos_token_id=2, pad_token_id=None))
        model.save_pretrained(folder)
        return model.double().eval()

    def log_probability(self, model, prompt, answer):
        before = self.tokenizer.apply_chat_template([{"role": "user", "content": prompt}], tokenize=False, add_generation_prompt=True)
        ids = [self.tokenizer(text, return_tensors="pt").input_ids for text in (before, before + answer + "<|im_end|>")]
        self.assertTrue((ids[1][:, :ids[0].shape[1]] == ids[0]).all())
        with torch.no_grad():
            logs = model(ids[1]).logits.log_softmax(-1)[0, :-1]
        of_targets = logs.gather(1, ids[1][0, 1:, None])[:, 0]
        return of_targets[ids[0].shape[1] - 1:].sum()

    def expected(self, model, reference, beta):
        rewards = torch.stack([torch.stack([beta * (self.log_probability(model, pair[0], answer) - self.log_probability(reference, pair[0], answer))
                                            for answer in pair[1:]]) for pair in PAIRS])
        margins = rewards[:, 0] - rewards[:, 1]
        return {"accuracy": (margins > 0).double().mean(), "margin": margins.mean(), "loss": -torch.nn.functional.logsigmoid(margins).mean(),
                "chosen_reward": rewards[:, 0].mean(), "rejected_reward": rewards[:, 1].mean()}

    def test_the_numbers_are_those_of_pytorch(self):
        model, reference = self.save("model", 1), self.save("reference", 2)
        for beta in (0.1, 0.7):
            done = support.fovea("eval", self.folder / "model", "--preferences", "--reference-model", self.folder / "reference", "--dpo-beta", beta,
                                 "--test", self.data, "--json")
            self.assertEqual(done.returncode, 0, done.stderr)
            found = json.loads(done.stdout)
            self.assertEqual((found["pairs"], found["left_out"], found["beta"]), (len(PAIRS), 0, beta))
            for name, value in self.expected(model, reference, beta).items():
                self.assertLess(abs(found[name]["value"] - value.item()), 1e-5 * max(1, abs(value.item())), name)


if __name__ == "__main__":
    unittest.main()
