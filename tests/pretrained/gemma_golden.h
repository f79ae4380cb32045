// SPDX-License-Identifier: Apache-2.0
// Made by make_gemma_golden.py.
// clang-format off
#pragma once

#include <string_view>
#include <vector>

namespace fovea {

struct GoldenGemma {
  std::string_view name;
  std::string_view layers;  // s: with a window, f: without
  int heads, kv_heads, head_dim, scalar, seen;  // keys that a query of a layer with a window sees
  double epsilon, cap, logit_cap, base, local_base, factor;
  std::vector<double> logits;  // [tokens, vocabulary]
  double loss;                 // mean over the tokens but the first
  struct Gradient {
    std::string_view parameter;
    double squares;  // the sum of its squares
    double waves;    // the sum over i of its i-th number times cos(i)
  };
  std::vector<Gradient> gradients;
};

inline constexpr int kGemmaWidth = 12, kGemmaFf = 20, kGemmaVocabulary = 14;
inline const std::vector<int> kGemmaIds = {1, 5, 1, 3, 11, 11, 3, 1, 5, 1, 3};

inline const GoldenGemma kGoldenGemmas[] = {
    {"gemma2", "sfs", 4, 2, 6, 9, 5, 0.001, 0.7, 1.25, 500.0, 0.0, 0.0,
     {
      0.4296959, 0.7898488, 0.8951353, 1.053773, -1.142561, 0.254527, -1.109181, 0.4490748, 0.7833539, 0.8733494, 0.9009096, -1.159179, 1.082422, -1.184021,
      0.8333032, -1.033403, 0.2001381, 0.6722545, -0.3947866, 1.175198, -0.8160851, 0.827126, -1.037246, 0.1870369, -0.9630572, -0.4089474, 0.6641114, -0.7395883,
      0.3151987, -0.6150395, 0.8763668, 1.049257, -0.5905539, 0.424895, -0.970915, 0.3260402, -0.643371, 0.8296556, -0.1020012, -0.7250372, 1.085061, -1.086655,
      0.3021083, -1.118582, 0.7189714, 1.062476, -0.3539243, 0.6049859, -0.6455944, 0.301274, -1.124351, 0.6789354, -0.7098023, -0.4573006, 1.080218, -0.6801694,
      -1.027246, 0.852061, -0.9339253, 0.9363939, 0.6944332, -0.4488642, 0.2429746, -1.039455, 0.874295, -0.8751752, 0.1654811, 0.8670754, 0.8140418, 0.6020819,
      -1.013029, 0.824322, -0.9076714, 0.7701779, 0.9303654, -0.5407123, 0.4073042, -1.024071, 0.8474153, -0.8488239, -0.0464423, 1.031383, 0.6193987, 0.6702926,
      0.1781776, -0.6176091, -0.4675159, 1.138489, -0.4340551, 0.512244, -0.6018111, 0.1589888, -0.619378, -0.4546783, -0.3255691, -0.3901529, 1.126697, 0.03223248,
      -0.8670852, 0.7946224, -0.8890647, 1.176476, -0.07862315, -0.7308224, -0.05707731, -0.8731246, 0.8059895, -0.863521, 0.7943305, 0.03347117, 1.165666, 0.334112,
      0.2486704, -0.9978073, -0.5218431, 0.6571696, 0.6943631, 0.8893573, -0.2313985, 0.2220422, -0.9993303, -0.5058972, -0.8308367, 0.7386487, 0.5888397, 0.5917605,
      -0.4827742, 0.524345, -0.1550577, 1.15264, 0.1504617, -0.03025977, -1.014851, -0.4922055, 0.4991106, -0.2035435, 0.8547618, 0.06324132, 1.157207, -0.7907637,
      -0.2344474, -0.4809969, -0.1277765, 1.177189, -0.1026352, 0.3121404, -0.9002745, -0.2537678, -0.5097274, -0.1751498, 0.6049853, -0.1777381, 1.178018, -0.6692377,
     },
     2.9166894,
     {
      {"embedding.tokens", 4.217583, -0.13173882},
      {"blocks.0.attention_norm.weight", 0.038616277, 0.13874844},
      {"blocks.0.attention.qkv.weight", 1.1839481, 0.14708532},
      {"blocks.0.attention.out.weight", 1.8061873, -0.18440383},
      {"blocks.0.attention_norm.after.weight", 0.11911319, -0.11638214},
      {"blocks.0.feed_forward_norm.weight", 0.0024689246, -0.046660268},
      {"blocks.0.feed_forward.gate.weight", 0.00805737, -0.033747298},
      {"blocks.0.feed_forward.in.weight", 0.037202109, 0.021944336},
      {"blocks.0.feed_forward.out.weight", 0.62203423, 0.067847809},
      {"blocks.0.feed_forward_norm.after.weight", 0.13515001, 0.025164186},
      {"blocks.1.attention_norm.weight", 0.070633079, -0.092564796},
      {"blocks.1.attention.qkv.weight", 1.6007512, -0.22624024},
      {"blocks.1.attention.out.weight", 0.60319429, -0.4343442},
      {"blocks.1.attention_norm.after.weight", 0.077749053, 0.056220846},
      {"blocks.1.feed_forward_norm.weight", 0.024904202, -0.049073838},
      {"blocks.1.feed_forward.gate.weight", 0.22407861, -0.1862604},
      {"blocks.1.feed_forward.in.weight", 0.12882036, -0.078082925},
      {"blocks.1.feed_forward.out.weight", 0.40403015, 0.1361789},
      {"blocks.1.feed_forward_norm.after.weight", 0.024024104, 0.066278016},
      {"blocks.2.attention_norm.weight", 0.055869898, 0.15772508},
      {"blocks.2.attention.qkv.weight", 0.41211115, 0.079131428},
      {"blocks.2.attention.out.weight", 0.12937488, -0.057248731},
      {"blocks.2.attention_norm.after.weight", 0.005727122, 0.015568252},
      {"blocks.2.feed_forward_norm.weight", 0.010158375, -0.011448823},
      {"blocks.2.feed_forward.gate.weight", 0.15117554, 0.2830842},
      {"blocks.2.feed_forward.in.weight", 0.091865435, -0.044441736},
      {"blocks.2.feed_forward.out.weight", 0.21167876, 0.24205318},
      {"blocks.2.feed_forward_norm.after.weight", 0.0081999052, 0.028682766},
      {"norm.weight", 0.020054544, -0.025332084},
     }},
    {"gemma3", "ssfs", 3, 1, 8, 5, 4, 1e-05, 0.0, 0.0, 2000.0, 40.0, 4.0,
     {
      -0.9953887, 0.318792, -1.088222, 0.7814831, 0.2556193, -0.1346196, 0.6973374, -0.9901221, 0.2781523, -1.174768, 0.1962472, 0.07726088, 0.897115, 1.206691,
      -0.2026324, -0.8505642, -0.3177358, -0.5643327, 1.050234, 0.2461931, 1.23552, -0.184601, -0.8753821, -0.3854027, 0.06905687, 0.8968687, -0.4395384, 1.188409,
      -1.14698, -0.004988418, -1.215921, 0.7024936, 0.151518, 0.2333963, -0.0352587, -1.147215, -0.06652606, -1.338761, 0.4155508, -0.09392659, 0.8475612, 1.16042,
      -0.8592147, 0.1930823, -0.5204757, 1.160998, -0.556283, -0.1576174, 0.2153713, -0.8857423, 0.2155285, -0.449056, 0.6979434, -0.3869162, 1.010758, 0.6994639,
      -0.3724812, 1.013331, -0.3516186, 0.2870443, 0.7126215, -1.123943, 0.2900688, -0.3660305, 1.038014, -0.3087013, -0.3833046, 0.7920056, 0.2521, 0.8865655,
      -0.7685288, 0.3090002, -0.06730495, -1.472948, 1.949221, -1.536812, 1.524666, -0.7529493, 0.3412048, -0.018475, -1.406208, 2.031301, -1.492342, 1.873046,
      0.9248727, 0.05426811, 0.09214203, 1.463037, -1.264676, 0.5281652, -0.8722605, 0.9124725, 0.09376342, 0.1835328, 0.4417215, -1.069494, 1.324031, -1.144387,
      -1.425126, 0.5585865, -0.5716478, 0.6760148, 0.6343349, -0.4438834, 1.312285, -1.434324, 0.5702726, -0.5390778, -0.4150425, 0.7086734, 0.6146649, 1.212365,
      0.9151233, -0.6053597, -0.6603671, -0.04543238, -0.306455, 1.684704, -0.5820215, 0.9273997, -0.6472446, -0.7564132, -0.2571234, -0.5108236, 0.09878773, -0.2924119,
      -0.5033944, -0.4716364, -1.110557, 0.561272, 0.1984892, 0.9692311, -0.5128781, -0.5037278, -0.5347452, -1.236442, 0.08863982, -0.05294582, 0.7097069, 0.8809299,
      0.3199467, -0.3721075, -0.7564718, 0.7641604, -0.4325793, 1.045045, -0.3488808, 0.3070464, -0.3662328, -0.731822, -0.3311023, -0.3703794, 0.7030517, 0.6790113,
     },
     3.16272235,
     {
      {"embedding.tokens", 18.155088, -4.0349616},
      {"blocks.0.attention_norm.weight", 0.21277532, 0.21646317},
      {"blocks.0.attention.qkv.weight", 7.0229016, -0.017586406},
      {"blocks.0.attention.out.weight", 9.4167758, -0.27297309},
      {"blocks.0.attention_norm.after.weight", 1.3337602, 0.64489198},
      {"blocks.0.feed_forward_norm.weight", 0.29518801, -0.65503633},
      {"blocks.0.feed_forward.gate.weight", 6.7712269, -1.6300005},
      {"blocks.0.feed_forward.in.weight", 8.449882, 1.9373246},
      {"blocks.0.feed_forward.out.weight", 14.583139, 3.3878951},
      {"blocks.0.feed_forward_norm.after.weight", 0.59001065, 0.26588116},
      {"blocks.0.attention.q_norm.weight", 0.2630693, 0.45999862},
      {"blocks.0.attention.k_norm.weight", 0.26505657, 0.63589508},
      {"blocks.1.attention_norm.weight", 1.2540153, 1.0206222},
      {"blocks.1.attention.qkv.weight", 34.202014, -3.3175575},
      {"blocks.1.attention.out.weight", 6.1266212, 0.47154124},
      {"blocks.1.attention_norm.after.weight", 0.14760106, 0.23560402},
      {"blocks.1.feed_forward_norm.weight", 0.51958999, 0.28472819},
      {"blocks.1.feed_forward.gate.weight", 9.8027528, 0.60213644},
      {"blocks.1.feed_forward.in.weight", 3.7063986, -0.46403258},
      {"blocks.1.feed_forward.out.weight", 3.437843, -0.52619941},
      {"blocks.1.feed_forward_norm.after.weight", 0.11844487, -0.48438503},
      {"blocks.1.attention.q_norm.weight", 0.21563167, -0.5469643},
      {"blocks.1.attention.k_norm.weight", 0.55559908, 0.43102275},
      {"blocks.2.attention_norm.weight", 0.15668008, -0.56449992},
      {"blocks.2.attention.qkv.weight", 3.8511224, 0.09388626},
      {"blocks.2.attention.out.weight", 0.96513777, 0.039332922},
      {"blocks.2.attention_norm.after.weight", 0.031387828, 0.0071874298},
      {"blocks.2.feed_forward_norm.weight", 0.041147864, -0.18511418},
      {"blocks.2.feed_forward.gate.weight", 0.73437371, -0.30961757},
      {"blocks.2.feed_forward.in.weight", 0.65465554, -0.10164175},
      {"blocks.2.feed_forward.out.weight", 0.71377477, -0.47341178},
      {"blocks.2.feed_forward_norm.after.weight", 0.01942956, 0.01564326},
      {"blocks.2.attention.q_norm.weight", 0.030542805, 0.079551882},
      {"blocks.2.attention.k_norm.weight", 0.040810549, 0.20152666},
      {"blocks.3.attention_norm.weight", 0.016264899, -0.045441197},
      {"blocks.3.attention.qkv.weight", 0.70585742, -0.55713264},
      {"blocks.3.attention.out.weight", 0.86364288, -0.25955116},
      {"blocks.3.attention_norm.after.weight", 0.014182282, -0.10642392},
      {"blocks.3.feed_forward_norm.weight", 0.021293831, -0.064136341},
      {"blocks.3.feed_forward.gate.weight", 0.36458713, 0.33495681},
      {"blocks.3.feed_forward.in.weight", 0.23079705, 0.74829424},
      {"blocks.3.feed_forward.out.weight", 0.23814845, -0.028241959},
      {"blocks.3.feed_forward_norm.after.weight", 0.01031199, -0.014715045},
      {"blocks.3.attention.q_norm.weight", 0.0041163058, -0.082316406},
      {"blocks.3.attention.k_norm.weight", 0.0029146704, -0.035578919},
      {"norm.weight", 0.157365, -0.2610883},
     }},
};

}  // namespace fovea
