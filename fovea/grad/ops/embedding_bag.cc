// SPDX-License-Identifier: Apache-2.0
#include "fovea/grad/ops.h"
#include "fovea/grad/ops/table_gradient.h"

namespace fovea {

Variable embedding_bag(Tape& tape, const TableBags& bags) {
  check(bags.table.defined(), "embedding_bag: the table is missing");
  check(!bags.offsets.empty(), "embedding_bag: offsets are [B + 1]; there are none");
  check(!bags.padding || (*bags.padding >= 0 && *bags.padding < bags.table.rows()),
        "embedding_bag: the padding {} is not in the table", bags.padding.value_or(0));
  const IdBags of{bags.ids, bags.offsets, bags.mode, bags.padding.value_or(-1)};
  const Variable y = tape.result(of.count(), bags.table.columns(), bags.table.dtype());
  with_type(y.dtype(), [&]<class T>(std::type_identity<T>) {
    const auto table = bags.table.rows_at<T>(tape.context(), bags.ids);
    embedding_bag_forward(tape.context(), table, of, y.value<T>());
    tape.record(y, {&bags.table, 1}, [=](Tape& t) {
      add_to_table<T>(t, bags.table, bags.ids, bags.padding, [&](const TableGradient<T>& to) {
        const IdBags places{to.places, bags.offsets, bags.mode, to.frozen};
        embedding_bag_backward(t.context(), places, t.gradient_of<T>(y), to.rows);
      });
    });
  });
  return y;
}

}  // namespace fovea
