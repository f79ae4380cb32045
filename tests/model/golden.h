// SPDX-License-Identifier: Apache-2.0
// Losses and gradients of small language models: made by make_golden.py, with PyTorch in float64.
#pragma once

#include "tests/model/golden_form.h"

namespace fovea::golden {

inline const std::vector<Form> kForms = {
    {"Default",
     form([](LanguageModelConfig& c) { c.heads = 2; }),
     0u,
     4.2819494633068125,
     7.89e-07,
     3.87e-07,
     {
         {"embedding.tokens", 2.9911552065158897, -0.3110039932777618, 1.21},
         {"embedding.positions", 2.3095461539518327, 0.13645383526581784, 1.33},
         {"blocks.0.attention.qkv.weight", 2.1179113937685967, -0.8801644340583954, 0.884},
         {"blocks.0.attention.out.weight", 1.548801795529701, -0.00040917207738333516, 0.494},
         {"blocks.0.attention_norm.weight", 0.6923648903002398, -0.025220991539708332, 0.576},
         {"blocks.0.feed_forward.in.weight", 1.9528932747720515, 0.07056906539685841, 0.427},
         {"blocks.0.feed_forward.out.weight", 1.9748363362941832, 0.3530086054388916, 0.438},
         {"blocks.0.feed_forward_norm.weight", 0.3917648891496433, -0.2069747541307812, 0.377},
         {"blocks.1.attention.qkv.weight", 1.4575793111863167, -0.4594473879553198, 0.485},
         {"blocks.1.attention.out.weight", 1.2385543772118575, 0.8499790208423554, 0.509},
         {"blocks.1.attention_norm.weight", 0.30780809943475684, 0.0031565828536304647, 0.196},
         {"blocks.1.feed_forward.in.weight", 0.9113471466241184, -0.05554082618310807, 0.179},
         {"blocks.1.feed_forward.out.weight", 0.8270577382097561, -0.12841826918713373, 0.2},
         {"blocks.1.feed_forward_norm.weight", 0.42535763046240727, -0.006357486751286348, 0.318},
         {"norm.weight", 0.33053947198144124, 0.017883137317828025, 0.221},
     }},
    {"RmsSharedKeys",
     form([](LanguageModelConfig& c) {
       c.heads = 2;
       c.kv_heads = 1;
       c.position = enum_from_name<PositionKind>("sinusoidal");
       c.norm = NormKind::kRms;
       c.activation = LayerActivation::kSilu;
       c.tie = false;
     }),
     0u,
     4.354041559817306,
     5.42e-07,
     1.80e-07,
     {
         {"embedding.tokens", 0.6872656003189491, -0.24557692571722958, 0.234},
         {"blocks.0.attention.qkv.weight", 0.26196365107377284, -0.06128378396062849, 0.124},
         {"blocks.0.attention.out.weight", 0.21220076649049183, 0.061541674912500594, 0.0618},
         {"blocks.0.attention_norm.weight", 0.07728585284381262, -0.004596898632010675, 0.0614},
         {"blocks.0.feed_forward.in.weight", 0.5493971970321033, -0.02889283547670625, 0.121},
         {"blocks.0.feed_forward.out.weight", 0.5924043147781627, -0.5058188545187469, 0.167},
         {"blocks.0.feed_forward_norm.weight", 0.1224517178553328, -0.04162081293574961, 0.093},
         {"blocks.1.attention.qkv.weight", 0.20625319798634364, -0.024936886723341146, 0.0998},
         {"blocks.1.attention.out.weight", 0.24771078733310725, -0.0060032935523887925, 0.0724},
         {"blocks.1.attention_norm.weight", 0.09113243673238137, -0.01389629455745734, 0.0755},
         {"blocks.1.feed_forward.in.weight", 0.41868550294306595, -0.02783687270794867, 0.112},
         {"blocks.1.feed_forward.out.weight", 0.39634914603520977, 0.04854982673946617, 0.094},
         {"blocks.1.feed_forward_norm.weight", 0.10882139847875288, -0.05141175070594931, 0.0742},
         {"norm.weight", 0.4959061369633639, 0.29928201334882887, 0.359},
         {"output.weight", 1.1289208635331496, -0.43004927568106643, 0.35},
     }},
    {"PostUnbiasedAlibi",
     form([](LanguageModelConfig& c) {
       c.heads = 3;
       c.head_dim = 3;
       c.position = enum_from_name<PositionKind>("alibi");
       c.norm_position = NormPosition::kPost;
       c.ln_variant = LayerNormVariant::kUnbiased;
       c.bias = true;
       c.activation = LayerActivation::kGeluTanh;
     }),
     0u,
     4.729767204108208,
     4.11e-07,
     2.26e-07,
     {
         {"embedding.tokens", 1.5421912325882734, -0.1855489025883108, 0.572},
         {"blocks.0.attention.qkv.weight", 0.4319068451712976, -0.00040759230604101027, 0.136},
         {"blocks.0.attention.qkv.bias", 0.5714935663628972, 0.12533361919661562, 0.37},
         {"blocks.0.attention.out.weight", 0.6079360065767617, -0.12797378178032776, 0.204},
         {"blocks.0.attention.out.bias", 0.559845476060301, -0.006400920320146379, 0.38},
         {"blocks.0.attention_norm.weight", 0.21184991676064044, -0.0014462183076408277, 0.131},
         {"blocks.0.attention_norm.bias", 0.12208292851956284, -0.019993882243897927, 0.0822},
         {"blocks.0.feed_forward.in.weight", 0.6967900807276199, -0.4668937108574048, 0.168},
         {"blocks.0.feed_forward.in.bias", 0.20716627947251015, 0.15034145743204547, 0.0972},
         {"blocks.0.feed_forward.out.weight", 0.6672465021481097, -0.22366479847544682, 0.157},
         {"blocks.0.feed_forward.out.bias", 0.17632735383279735, -0.008189498222720725, 0.136},
         {"blocks.0.feed_forward_norm.weight", 0.24507168873835414, -0.007890880100935834, 0.169},
         {"blocks.0.feed_forward_norm.bias", 0.21598953768656792, 0.15775670983037168, 0.162},
         {"blocks.1.attention.qkv.weight", 0.3514899011256119, -0.10147693315863165, 0.131},
         {"blocks.1.attention.qkv.bias", 0.133298472611693, -0.016100363731333608, 0.0994},
         {"blocks.1.attention.out.weight", 0.3606144438010073, 0.09350847254279604, 0.128},
         {"blocks.1.attention.out.bias", 0.21434876840241107, -0.009467584526980323, 0.157},
         {"blocks.1.attention_norm.weight", 0.23768054808451455, 0.024852069507015774, 0.18},
         {"blocks.1.attention_norm.bias", 0.2905548722537363, -0.027158645411808974, 0.222},
         {"blocks.1.feed_forward.in.weight", 0.5806978136886661, 0.3148225177427586, 0.139},
         {"blocks.1.feed_forward.in.bias", 0.20203318365041578, -0.010919989372378161, 0.0979},
         {"blocks.1.feed_forward.out.weight", 0.6592363397631036, 0.2748764363107936, 0.217},
         {"blocks.1.feed_forward.out.bias", 0.24227015175313282, -0.008420220570573088, 0.185},
         {"blocks.1.feed_forward_norm.weight", 0.6038274895815866, 0.14378471198356324, 0.376},
         {"blocks.1.feed_forward_norm.bias", 0.7535494491069497, -0.15898637791240514, 0.393},
     }},
    {"NoPositionsRelu",
     form([](LanguageModelConfig& c) {
       c.heads = 2;
       c.ff = 5;
       c.position = enum_from_name<PositionKind>("none");
       c.bias = true;
       c.activation = LayerActivation::kRelu;
       c.tie = false;
     }),
     0u,
     4.808993218044003,
     4.90e-07,
     1.99e-07,
     {
         {"embedding.tokens", 1.48026965556722, 0.1728692690880293, 0.491},
         {"blocks.0.attention.qkv.weight", 1.327116466553905, 0.42871111799716133, 0.592},
         {"blocks.0.attention.qkv.bias", 0.5111806894793766, 0.10475626783871411, 0.317},
         {"blocks.0.attention.out.weight", 1.6366998507988506, 0.1214367198397745, 0.673},
         {"blocks.0.attention.out.bias", 0.5285129477131133, -0.014361191629684023, 0.323},
         {"blocks.0.attention_norm.weight", 0.2829910741640374, -0.001506525766029214, 0.191},
         {"blocks.0.attention_norm.bias", 0.4318187782487884, -0.08349140893287674, 0.278},
         {"blocks.0.feed_forward.in.weight", 0.9362577727502382, 0.1879003564832218, 0.412},
         {"blocks.0.feed_forward.in.bias", 0.20509525494729072, 0.021271915533396583, 0.125},
         {"blocks.0.feed_forward.out.weight", 0.3460995074561142, -0.05463615768255716, 0.167},
         {"blocks.0.feed_forward.out.bias", 0.5071914661277434, -0.022694211852952256, 0.394},
         {"blocks.0.feed_forward_norm.weight", 0.19430542905740944, -0.011421310104820025, 0.126},
         {"blocks.0.feed_forward_norm.bias", 0.20238944621953536, -0.20914232283428852, 0.107},
         {"blocks.1.attention.qkv.weight", 0.9572067455972024, 0.07228023251647402, 0.337},
         {"blocks.1.attention.qkv.bias", 0.3706316372148826, 0.06271878010845651, 0.232},
         {"blocks.1.attention.out.weight", 0.8285189230720035, 0.2247040692249611, 0.343},
         {"blocks.1.attention.out.bias", 0.40077751710329435, -0.009805559442838563, 0.263},
         {"blocks.1.attention_norm.weight", 0.16743702723723639, 0.1269402079479934, 0.108},
         {"blocks.1.attention_norm.bias", 0.2898899304976552, 0.07322105479354182, 0.201},
         {"blocks.1.feed_forward.in.weight", 0.47489191525686814, 0.06304615984721006, 0.276},
         {"blocks.1.feed_forward.in.bias", 0.21590093772466007, 0.0024949322449268514, 0.176},
         {"blocks.1.feed_forward.out.weight", 0.5757842745124946, 0.36531771250243006, 0.269},
         {"blocks.1.feed_forward.out.bias", 0.3469379419950199, -0.01148165451941921, 0.234},
         {"blocks.1.feed_forward_norm.weight", 0.20800702409895083, 0.0010765899926416956, 0.167},
         {"blocks.1.feed_forward_norm.bias", 0.21176243529939193, 0.055080645963946614, 0.113},
         {"norm.weight", 0.6721433953700362, -0.386659468725914, 0.493},
         {"norm.bias", 0.4178175619803507, -0.04035404607407154, 0.23},
         {"output.weight", 1.615043123303083, -0.8898879140989051, 0.579},
         {"output.bias", 0.4455197095454903, -0.026913557009463292, 0.274},
     }},
    {"Source",
     form([](LanguageModelConfig& c) {
       c.heads = 2;
       c.norm_position = NormPosition::kPost;
       c.ln_variant = LayerNormVariant::kUnbiased;
       c.bias = true;
       c.activation = LayerActivation::kRelu;
       c.tie = false;
     }),
     0u,
     4.299507772129426,
     6.90e-07,
     2.58e-07,
     {
         {"embedding.tokens", 0.8576650460729479, 0.016325856617634638, 0.303},
         {"embedding.positions", 0.8584065741232679, 0.17179851212922093, 0.428},
         {"blocks.0.attention.qkv.weight", 0.46824368189174, 0.31143830530868705, 0.149},
         {"blocks.0.attention.qkv.bias", 0.3118858642653316, -0.005621213502075277, 0.219},
         {"blocks.0.attention.out.weight", 0.5588050982267894, 0.13193125105059922, 0.19},
         {"blocks.0.attention.out.bias", 0.42091704108526784, -0.009630006339793447, 0.38},
         {"blocks.0.attention_norm.weight", 0.16965946403875073, 0.002387506145401192, 0.128},
         {"blocks.0.attention_norm.bias", 0.20761739227737663, 0.13364812895181827, 0.194},
         {"blocks.0.feed_forward.in.weight", 0.6251803623095713, -0.02210520517294906, 0.175},
         {"blocks.0.feed_forward.in.bias", 0.22036957489442663, 0.0855645533263303, 0.105},
         {"blocks.0.feed_forward.out.weight", 0.5437021903408649, -0.12302081804387738, 0.14},
         {"blocks.0.feed_forward.out.bias", 0.1928535780635987, -0.006941436136662333, 0.139},
         {"blocks.0.feed_forward_norm.weight", 0.21343558879829888, -0.04130100939313974, 0.149},
         {"blocks.0.feed_forward_norm.bias", 0.26330742416593256, -0.05133319763796683, 0.205},
         {"blocks.1.attention.qkv.weight", 0.4425022243168427, -0.12197226713507581, 0.157},
         {"blocks.1.attention.qkv.bias", 0.2108583923545677, 0.016323729526577443, 0.114},
         {"blocks.1.attention.out.weight", 0.5157613782176257, -0.4122010452942426, 0.171},
         {"blocks.1.attention.out.bias", 0.2713453933682829, -0.007412864995371443, 0.16},
         {"blocks.1.attention_norm.weight", 0.20296221600586198, -0.00886994732431418, 0.107},
         {"blocks.1.attention_norm.bias", 0.38092262661127185, -0.014291677025793849, 0.221},
         {"blocks.1.feed_forward.in.weight", 0.756130913349522, -0.2610598942699596, 0.145},
         {"blocks.1.feed_forward.in.bias", 0.26401314547787247, -0.026689917501132254, 0.0977},
         {"blocks.1.feed_forward.out.weight", 0.8323242806958969, -0.19809256681687393, 0.234},
         {"blocks.1.feed_forward.out.bias", 0.25623446334674255, -0.0030378294037044593, 0.21},
         {"blocks.1.feed_forward_norm.weight", 0.4209679669404706, -0.07754234129414489, 0.328},
         {"blocks.1.feed_forward_norm.bias", 0.4164335733420687, 0.037424935651641886, 0.243},
         {"output.weight", 1.307066563833473, -0.2154452211419174, 0.417},
         {"output.bias", 0.37389675048576393, 0.010222153298361647, 0.203},
     }},
    {"GroupedAlibi",
     form([](LanguageModelConfig& c) {
       c.heads = 4;
       c.kv_heads = 2;
       c.ff = 12;
       c.position = enum_from_name<PositionKind>("alibi");
       c.norm = NormKind::kRms;
       c.bias = true;
     }),
     0u,
     4.410139525699787,
     4.38e-07,
     2.05e-07,
     {
         {"embedding.tokens", 1.6423820912347133, -0.616739662361907, 0.798},
         {"blocks.0.attention.qkv.weight", 0.9801475364375546, 0.006912008198176778, 0.266},
         {"blocks.0.attention.qkv.bias", 0.2846836751711456, 0.04252518741367069, 0.196},
         {"blocks.0.attention.out.weight", 1.0958781518577467, -0.13528869225508294, 0.377},
         {"blocks.0.attention.out.bias", 0.5310845088403036, 0.19283964361009348, 0.329},
         {"blocks.0.attention_norm.weight", 0.3128305118710683, -0.021992872625958244, 0.245},
         {"blocks.0.feed_forward.in.weight", 0.8326862322366831, 0.17839498662617256, 0.311},
         {"blocks.0.feed_forward.in.bias", 0.2742348650562654, 0.1592188696041939, 0.201},
         {"blocks.0.feed_forward.out.weight", 0.6047299810579486, 0.14132630129403567, 0.39},
         {"blocks.0.feed_forward.out.bias", 0.4945206943855036, 0.1066115982177722, 0.385},
         {"blocks.0.feed_forward_norm.weight", 0.2998660364883302, 0.02072550536757462, 0.192},
         {"blocks.1.attention.qkv.weight", 1.0018718888038975, 0.08792983068047842, 0.389},
         {"blocks.1.attention.qkv.bias", 0.3426883993692449, 0.10379960518642316, 0.27},
         {"blocks.1.attention.out.weight", 0.5552480420371334, 0.003915498865253029, 0.192},
         {"blocks.1.attention.out.bias", 0.38319181316450474, 0.03263923843900271, 0.216},
         {"blocks.1.attention_norm.weight", 0.31413742440150216, -0.0010445668566135503, 0.186},
         {"blocks.1.feed_forward.in.weight", 0.3566898877957642, -0.020127052649291287, 0.176},
         {"blocks.1.feed_forward.in.bias", 0.1099703336502721, 0.0747418334850823, 0.0692},
         {"blocks.1.feed_forward.out.weight", 0.6803596587421992, -0.16837433131712048, 0.323},
         {"blocks.1.feed_forward.out.bias", 0.3730392109304013, -0.030693686561551855, 0.218},
         {"blocks.1.feed_forward_norm.weight", 0.07406180538604897, -0.03828023274894785, 0.0388},
         {"norm.weight", 0.8220029705922938, -0.3875910253879315, 0.769},
     }},
    {"PreUnbiased",
     form([](LanguageModelConfig& c) {
       c.heads = 4;
       c.kv_heads = 2;
       c.position = enum_from_name<PositionKind>("sinusoidal");
       c.embedding_scale = 1.5;
       c.ln_variant = LayerNormVariant::kUnbiased;
       c.activation = LayerActivation::kGeluTanh;
     }),
     0u,
     4.540108060383481,
     5.29e-07,
     2.36e-07,
     {
         {"embedding.tokens", 1.1704107617153185, -0.8188236180392466, 0.374},
         {"blocks.0.attention.qkv.weight", 0.8989278610529422, -0.02092110975352983, 0.328},
         {"blocks.0.attention.out.weight", 0.6738973919077079, 0.13013752011424923, 0.202},
         {"blocks.0.attention_norm.weight", 0.2745121589588072, -0.020351668614222107, 0.165},
         {"blocks.0.feed_forward.in.weight", 0.7463016414310626, -0.12935422246661926, 0.178},
         {"blocks.0.feed_forward.out.weight", 0.966396026514244, -0.7941002594521323, 0.248},
         {"blocks.0.feed_forward_norm.weight", 0.14704980658595512, -0.032311362319613526, 0.0971},
         {"blocks.1.attention.qkv.weight", 0.3194703520089764, -0.16437375427964235, 0.135},
         {"blocks.1.attention.out.weight", 0.2961232642045882, 0.03640242521764095, 0.0753},
         {"blocks.1.attention_norm.weight", 0.07059019481130493, 0.0019462868344489012, 0.0421},
         {"blocks.1.feed_forward.in.weight", 0.6372784846023005, -0.12184971881476346, 0.174},
         {"blocks.1.feed_forward.out.weight", 0.6279309622285154, -0.09423303575654154, 0.163},
         {"blocks.1.feed_forward_norm.weight", 0.12835823148810194, -0.032569762543144955, 0.0985},
         {"norm.weight", 0.6426096684415556, 0.3327460168509866, 0.479},
     }},
    {"PostRmsFewHeads",
     form([](LanguageModelConfig& c) {
       c.heads = 1;
       c.head_dim = 5;
       c.position = enum_from_name<PositionKind>("none");
       c.embedding_scale = 0.75;
       c.norm = NormKind::kRms;
       c.norm_position = NormPosition::kPost;
       c.activation = LayerActivation::kSilu;
     }),
     0u,
     4.870392957344121,
     2.48e-07,
     1.63e-07,
     {
         {"embedding.tokens", 1.883541435453657, -0.977093320059137, 0.48},
         {"blocks.0.attention.qkv.weight", 0.3139794117975952, -0.1911538911391742, 0.165},
         {"blocks.0.attention.out.weight", 0.3212482833605528, -0.06295872979333092, 0.165},
         {"blocks.0.attention_norm.weight", 0.491708405949988, 0.006372727358149616, 0.349},
         {"blocks.0.feed_forward.in.weight", 0.6993412845089239, -0.12115856411118657, 0.152},
         {"blocks.0.feed_forward.out.weight", 0.6879421940275661, -0.3048072761835319, 0.16},
         {"blocks.0.feed_forward_norm.weight", 0.35229231722697396, 0.01927590420112342, 0.256},
         {"blocks.1.attention.qkv.weight", 0.31810527958951784, 0.07245913363943679, 0.146},
         {"blocks.1.attention.out.weight", 0.2061088681480923, 0.10412347302530325, 0.0954},
         {"blocks.1.attention_norm.weight", 0.4726904113249779, 0.02449449189664774, 0.293},
         {"blocks.1.feed_forward.in.weight", 0.7447138844769696, -0.16690823805988744, 0.161},
         {"blocks.1.feed_forward.out.weight", 0.7957264717564186, 0.1358795048205376, 0.2},
         {"blocks.1.feed_forward_norm.weight", 0.697818070193176, 0.543957899996264, 0.329},
     }},
    {"Dropout",
     form([](LanguageModelConfig& c) {
       c.heads = 2;
       c.dropout = 0.25;
     }),
     0u,
     4.899771016834288,
     1.23e-06,
     5.64e-07,
     {
         {"embedding.tokens", 2.2757275132198513, -0.9563843141173458, 0.961},
         {"embedding.positions", 1.9552333260089894, -0.8049688172971341, 1.12},
         {"blocks.0.attention.qkv.weight", 1.6021217870174806, -0.5219122599344828, 0.61},
         {"blocks.0.attention.out.weight", 1.3362453694838492, 0.3585281087838832, 0.394},
         {"blocks.0.attention_norm.weight", 0.7779922045585405, -0.13055247957540525, 0.421},
         {"blocks.0.feed_forward.in.weight", 1.5201946022506363, -0.4849719986255694, 0.379},
         {"blocks.0.feed_forward.out.weight", 1.6716464516876728, 0.0640468686462849, 0.565},
         {"blocks.0.feed_forward_norm.weight", 0.45221027836731503, -0.1623103928664694, 0.333},
         {"blocks.1.attention.qkv.weight", 1.03048309940417, 0.18289801138541262, 0.301},
         {"blocks.1.attention.out.weight", 1.1258938749214458, 0.70989876326585, 0.384},
         {"blocks.1.attention_norm.weight", 0.25536797878790773, 0.02529700753914351, 0.199},
         {"blocks.1.feed_forward.in.weight", 0.637844745379456, -0.005198053368504513, 0.136},
         {"blocks.1.feed_forward.out.weight", 0.7059353766485688, -0.07924410720688999, 0.183},
         {"blocks.1.feed_forward_norm.weight", 0.11816148868455645, 0.004100348806576035, 0.0809},
         {"norm.weight", 0.6284397910482571, 0.04246156024194814, 0.406},
     }},
    {"DropoutNextUpdate",
     form([](LanguageModelConfig& c) {
       c.heads = 2;
       c.dropout = 0.25;
     }),
     1u,
     4.451130381907994,
     9.46e-07,
     5.63e-07,
     {
         {"embedding.tokens", 2.122626944549526, -1.6233304784211402, 0.826},
         {"embedding.positions", 2.117938685543313, -0.4690465816350347, 1.16},
         {"blocks.0.attention.qkv.weight", 1.8418161023251198, -0.6959960940268821, 0.684},
         {"blocks.0.attention.out.weight", 1.36552735839804, 0.17517610682096318, 0.407},
         {"blocks.0.attention_norm.weight", 1.190908794375991, -0.04485583760343427, 0.544},
         {"blocks.0.feed_forward.in.weight", 1.5691197916686943, 0.35811244803739956, 0.325},
         {"blocks.0.feed_forward.out.weight", 1.5203506376758802, 0.3427832165698148, 0.488},
         {"blocks.0.feed_forward_norm.weight", 0.4688893437925545, 0.19028941180666437, 0.24},
         {"blocks.1.attention.qkv.weight", 1.170150944826858, 0.07615965021116046, 0.321},
         {"blocks.1.attention.out.weight", 0.9499343038456036, 0.574275461577378, 0.348},
         {"blocks.1.attention_norm.weight", 0.29480455556323365, 0.022835434376016973, 0.17},
         {"blocks.1.feed_forward.in.weight", 0.7310398179282399, -0.4200812474588209, 0.197},
         {"blocks.1.feed_forward.out.weight", 0.6953769949113912, -0.2814189255016985, 0.167},
         {"blocks.1.feed_forward_norm.weight", 0.26893699865964255, 0.1496571288583169, 0.173},
         {"norm.weight", 0.39168484511923723, 0.03372152227795497, 0.246},
     }},
    {"PostDropoutAlibi",
     form([](LanguageModelConfig& c) {
       c.heads = 4;
       c.kv_heads = 2;
       c.dropout = 0.5;
       c.position = enum_from_name<PositionKind>("alibi");
       c.norm_position = NormPosition::kPost;
       c.bias = true;
       c.tie = false;
     }),
     4294967299u,
     4.323312694879043,
     1.17e-06,
     4.07e-07,
     {
         {"embedding.tokens", 0.799272408889331, -0.08693246974636486, 0.409},
         {"blocks.0.attention.qkv.weight", 0.35233289311307847, 0.0665915078451145, 0.178},
         {"blocks.0.attention.qkv.bias", 0.1164517461439292, 0.01635131686453881, 0.106},
         {"blocks.0.attention.out.weight", 0.5368627591042919, -0.20339765967998513, 0.189},
         {"blocks.0.attention.out.bias", 0.3796983524346578, -0.1091934744285307, 0.299},
         {"blocks.0.attention_norm.weight", 0.16312574643127908, 0.008757886186289358, 0.121},
         {"blocks.0.attention_norm.bias", 0.15263885995921567, -0.015922830665427167, 0.0742},
         {"blocks.0.feed_forward.in.weight", 1.0010899963026, 0.2769091196409685, 0.243},
         {"blocks.0.feed_forward.in.bias", 0.2157246315290983, -0.0034475802363057723, 0.14},
         {"blocks.0.feed_forward.out.weight", 0.8395621260476019, 0.20436403397594818, 0.212},
         {"blocks.0.feed_forward.out.bias", 0.13621472407909363, 0.002054287852903981, 0.0815},
         {"blocks.0.feed_forward_norm.weight", 0.1899244589503501, -0.06383756621686362, 0.16},
         {"blocks.0.feed_forward_norm.bias", 0.15357253854309214, -0.05526950326992343, 0.0818},
         {"blocks.1.attention.qkv.weight", 0.7367850978164582, 0.10978864184172873, 0.329},
         {"blocks.1.attention.qkv.bias", 0.2035614300706438, 0.0975590254212761, 0.15},
         {"blocks.1.attention.out.weight", 0.605030594753179, 0.044685770150630647, 0.221},
         {"blocks.1.attention.out.bias", 0.21247714440094415, 0.009394394975077987, 0.166},
         {"blocks.1.attention_norm.weight", 0.31007197922888136, -0.05575285923825646, 0.236},
         {"blocks.1.attention_norm.bias", 0.183969192892987, -0.014324648696389428, 0.133},
         {"blocks.1.feed_forward.in.weight", 0.7272953073237086, 0.03618967621320068, 0.156},
         {"blocks.1.feed_forward.in.bias", 0.20908533250517053, -0.034938690804236186, 0.103},
         {"blocks.1.feed_forward.out.weight", 0.7937457508094409, -0.21114648114997542, 0.224},
         {"blocks.1.feed_forward.out.bias", 0.267616374333277, 0.020758161377347116, 0.136},
         {"blocks.1.feed_forward_norm.weight", 0.5717717158357049, 0.07967036383837192, 0.436},
         {"blocks.1.feed_forward_norm.bias", 0.2253924822357841, -0.04110976432752239, 0.128},
         {"output.weight", 1.0888199258039826, -0.2740902027184392, 0.374},
         {"output.bias", 0.27334702671917316, -0.13450536275182456, 0.154},
     }},
};
}  // namespace fovea::golden
