# SPDX-License-Identifier: Apache-2.0
# The rooms, from the ground up, and what each stands on.
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(hwy REQUIRED)

fovea_room(base LINK fmt::fmt Threads::Threads)
fovea_room(simd LINK fovea_base hwy::hwy)
fovea_room(attention LINK fovea_simd fovea_base)
if(FOVEA_ATTENTION_ONLY)
  return()
endif()

find_package(ZLIB REQUIRED)
find_library(FOVEA_UTF8PROC utf8proc REQUIRED)  # has no CMake package; looked for to say so early
find_library(FOVEA_ZSTD zstd REQUIRED)  # nor has this one everywhere
find_library(FOVEA_SENTENCEPIECE sentencepiece_train REQUIRED)

fovea_room(kernel LINK fovea_simd fovea_base)
fovea_room(text LINK fovea_base utf8proc ZLIB::ZLIB zstd sentencepiece_train sentencepiece)
fovea_room(report SMALL LINK fovea_base utf8proc)
fovea_page_files(fovea_report ${PROJECT_SOURCE_DIR}/fovea/report/page)
fovea_room(catalogue SMALL LINK fovea_base)
fovea_catalogue(fovea_catalogue ${PROJECT_SOURCE_DIR}/fovea/catalogue/zh_CN.po)
fovea_room(parts LINK fovea_attention fovea_base)
fovea_room(metrics LINK fovea_text fovea_base)
fovea_room(tensor LINK fovea_kernel fovea_base ZLIB::ZLIB)
fovea_room(config LINK fovea_base)
fovea_room(grad LINK fovea_tensor fovea_parts fovea_attention fovea_kernel fovea_simd fovea_base)
fovea_room(nn LINK fovea_config fovea_grad fovea_parts fovea_tensor fovea_attention fovea_kernel fovea_simd fovea_base)
fovea_room(data LINK fovea_tensor fovea_config fovea_text fovea_base)
fovea_room(model LINK fovea_nn fovea_config fovea_text fovea_parts fovea_grad fovea_tensor fovea_attention fovea_kernel fovea_base)
fovea_room(train LINK fovea_grad fovea_tensor fovea_config fovea_report fovea_kernel fovea_base)
fovea_room(operator SMALL LINK fovea_parts fovea_attention fovea_tensor fovea_config fovea_report fovea_text fovea_base)
fovea_room(linear LINK fovea_model fovea_data fovea_text fovea_tensor fovea_simd fovea_base)
fovea_room(explain SMALL LINK fovea_config fovea_model fovea_nn fovea_grad fovea_report fovea_text fovea_base)
fovea_room(pretrained SMALL LINK fovea_model fovea_nn fovea_grad fovea_tensor fovea_text fovea_config fovea_base)
fovea_room(task SMALL BUT decode LINK fovea_pretrained fovea_explain fovea_linear fovea_model fovea_metrics fovea_parts fovea_train fovea_data fovea_report fovea_text fovea_tensor fovea_config fovea_grad fovea_attention fovea_simd fovea_base)

# What only checks use. Nothing above links it, and fovea::fovea does without.
fovea_room(reference LINK fovea_grad fovea_tensor fovea_kernel fovea_base)
