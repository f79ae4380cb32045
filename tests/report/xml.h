// SPDX-License-Identifier: Apache-2.0
// A strict reader of the part of XML 1.0 that plots are written in: elements with attributes in
// double quotes, text, the five named entities and &#39;. It accepts nothing that XML forbids.
#pragma once

#include <cctype>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace fovea {

class XmlReader {
 public:
  explicit XmlReader(std::string_view text) : text_(text) {}

  /// The first error and its place; "" if the text is one well-formed element.
  std::string error() {
    while (problem_.empty() && at_ < text_.size()) {
      if (text_[at_] == '<') {
        tag();
      } else {
        characters();
      }
    }
    if (problem_.empty() && !open_.empty()) problem_ = "not closed: " + open_.back();
    if (problem_.empty() && roots_ != 1) problem_ = "not one root";
    return problem_.empty() ? "" : problem_ + " at byte " + std::to_string(at_);
  }

 private:
  void characters() {
    const std::size_t end = std::min(text_.find('<', at_), text_.size());
    const std::string_view run = text_.substr(at_, end - at_);
    if (open_.empty() && run.find_first_not_of(" \n") != run.npos) problem_ = "text outside";
    if (run.find("]]>") != run.npos) problem_ = "]]> in text";
    value(run);
    at_ = end;
  }

  void value(std::string_view run) {
    for (std::size_t i = 0; i < run.size(); ++i) {
      const auto byte = static_cast<unsigned char>(run[i]);
      if (byte < 0x20 && byte != '\n' && byte != '\t' && byte != '\r')
        problem_ = "control character";
      if (run[i] != '&') continue;
      const std::string_view entity = run.substr(i, run.find(';', i) - i + 1);
      static const std::set<std::string_view> kKnown = {"&amp;",  "&lt;",   "&gt;",
                                                        "&quot;", "&apos;", "&#39;"};
      if (kKnown.count(entity) == 0) problem_ = "bad entity";
    }
  }

  std::string name() {
    const std::size_t begin = at_;
    while (at_ < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '-'))
      ++at_;
    if (at_ == begin) problem_ = "expected a name";
    return std::string(text_.substr(begin, at_ - begin));
  }

  bool take(std::string_view what) {
    if (text_.substr(at_, what.size()) != what) return false;
    at_ += what.size();
    return true;
  }

  void tag() {
    if (take("</")) {
      const std::string closed = name();
      if (open_.empty() || open_.back() != closed || !take(">")) problem_ = "bad end of " + closed;
      if (problem_.empty()) open_.pop_back();
      return;
    }
    take("<");
    roots_ += open_.empty() ? 1 : 0;
    const std::string element = name();
    std::set<std::string> seen;
    while (problem_.empty() && take(" ")) {
      const std::string attribute = name();
      if (!seen.insert(attribute).second) problem_ = "twice: " + attribute;
      if (!take("=\"")) problem_ = "expected a value of " + attribute;
      const std::size_t end = text_.find('"', at_);
      if (end == text_.npos) problem_ = "value without end";
      if (!problem_.empty()) return;
      const std::string_view run = text_.substr(at_, end - at_);
      if (run.find('<') != run.npos) problem_ = "< in a value";
      value(run);
      at_ = end + 1;
    }
    if (take("/>")) return;
    if (!take(">")) problem_ = "bad tag " + element;
    open_.push_back(element);
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int roots_ = 0;
  std::vector<std::string> open_;
  std::string problem_;
};

inline std::string xml_error(std::string_view text) { return XmlReader(text).error(); }

}  // namespace fovea
