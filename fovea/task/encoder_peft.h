// SPDX-License-Identifier: Apache-2.0
// Adapters of PEFT for a model on an encoder that is loaded without them (--adapter): of its
// products, and modules that a folder holds whole, as the head of a classifier or a tagger
// (modules_to_save).
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/model/bert.h"
#include "fovea/pretrained/encoder.h"
#include "fovea/pretrained/encoder_table.h"
#include "fovea/task/peft.h"
#include "fovea/task/task_table.h"

namespace fovea {

/// The option of commands that use an encoder, and of nothing else.
struct EncoderAdapterOptions {
  std::vector<std::string> adapter = {};

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit("adapter", adapter,
          "adapters of a model on an encoder: folders of PEFT; polite=0.5: they count half. A head "
          "that one holds is that of the model",
          {.shown = "DIR[=X]..."});
  }
};

/// What the folders hold, read before the model is made.
class EncoderPeft {
 public:
  /// `model`: the folder of the model; `head`: that which it is loaded with. Throws kModelMissing,
  /// kModelDamaged, and kModelWrongKind for a model on no encoder, adapters of a model with
  /// another head, what fovea does not know of them, and several heads; kOptionValue.
  EncoderPeft(const std::filesystem::path& model, std::span<const std::string> choices,
              BertHead head);

  bool empty() const { return folders_.empty(); }
  /// The head that one of the folders holds; null: none does.
  const GivenHead* head() const { return head_ ? &*head_ : nullptr; }

  /// Sets the values of what the folders hold whole, whatever their factors, and adds their
  /// adapters to the weights. `parameters` are called as those of BertLayers. Throws
  /// kModelWrongKind for what the model does not have, or of another shape, and for what two
  /// folders hold whole; kModelDamaged for a value that is not finite, alone or added up; and what
  /// make_adapters() throws.
  void apply(std::span<Parameter* const> parameters) const;

 private:
  struct Folder {
    AdapterChoice choice;
    AdapterFolder adapters;          // without what is held whole
    std::vector<NamedTensor> whole;  // as PEFT names them
  };
  struct Place;
  using Holders = std::map<std::string, std::string>;  // the file of each tensor that is whole

  void read(const std::string& choice);
  void find_head();
  std::string plain(std::string_view tensor) const;
  std::vector<Place> places_of(std::span<Parameter* const> parameters) const;
  bool is_left_out(std::string_view plain) const;
  [[noreturn]] void refuse_module(const AdapterFolder& adapters, std::string_view module) const;
  void set_whole(const Folder& folder, std::span<const Place> places, Holders& holders) const;
  std::vector<LowRankTarget> targets_of(Folder& folder, std::span<const Place> places) const;

  std::filesystem::path model_;
  BertHead wanted_;
  const EncoderArchitecture* row_ = nullptr;  // null without folders
  std::vector<Folder> folders_;
  std::optional<GivenHead> head_;
};

/// The kind of a model with these adapters: a folder of Hugging Face is what the head is of that
/// these hold. Throws as kind_of_model(), and kModelWrongKind for a head that may be of texts or of
/// tokens.
ModelKind kind_of_model(const std::filesystem::path& model, std::span<const std::string> adapters);

}  // namespace fovea
