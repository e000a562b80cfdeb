/* weft/stream_type.h: streams of GPUs, for calls that enqueue. The type is CUDA's own behind cudaStream_t and CUstream,
 * so that either is a weft_stream * without a cast, and no CUDA header is needed here. */
#ifndef WEFT_STREAM_TYPE_H
#define WEFT_STREAM_TYPE_H

typedef struct CUstream_st weft_stream;

#endif
