/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Copies of two and three dimensions, each up, down and across. */
#include <string.h>

#include "rows.h"

#define WIDTH  ((size_t)104)
#define HEIGHT ((size_t)50)
#define DEPTH  ((size_t)15)
#define PITCH  ((size_t)4096)
#define ROWS   ((size_t)60) /* of a plane in memory */

/* One end of a copy: where the box begins in which memory. */
struct end {
	CUmemorytype type;
	CUdeviceptr device;
	unsigned char *memory; /* host memory, or what the device must hold */
};

enum direction { UP, DOWN, ACROSS, DIRECTIONS };

/* Ends of a copy in @direction; the first of them is written to. */
static void ends(enum direction direction, struct end *dst, struct end *src)
{
	const struct end on_a = {CU_MEMORYTYPE_DEVICE, a, in_a};
	const struct end on_b = {CU_MEMORYTYPE_DEVICE, b, in_b};
	const struct end on_host = {CU_MEMORYTYPE_HOST, 0, host};

	*dst = direction == DOWN ? on_host : on_a;
	*src = direction == UP ? on_host : on_b;
}

/* The copy as it must come out; for DOWN the host has it already. */
static void expect(enum direction direction, size_t depth)
{
	struct end dst, src;

	ends(direction, &dst, &src);
	for (size_t z = 0; z < depth; z++)
		for (size_t y = 0; y < HEIGHT; y++) {
			size_t to = ((z + 1) * ROWS + y + 2) * PITCH + 8;
			size_t from = (z * ROWS + y + 1) * PITCH + 16;

			if (direction != DOWN)
				memcpy(dst.memory + to, src.memory + from,
				        WIDTH);
			else if (memcmp(dst.memory + to, src.memory + from,
			                 WIDTH))
				disagree();
		}
}

/* In two dimensions the second plane of the target is reached by its y. */
static CUDA_MEMCPY2D form_2d(enum direction direction)
{
	struct end dst, src;

	ends(direction, &dst, &src);
	return (CUDA_MEMCPY2D){.srcXInBytes = 16,
	        .srcY = 1,
	        .srcMemoryType = src.type,
	        .srcHost = src.memory,
	        .srcDevice = src.device,
	        .srcPitch = PITCH,
	        .dstXInBytes = 8,
	        .dstY = ROWS + 2,
	        .dstMemoryType = dst.type,
	        .dstHost = dst.memory,
	        .dstDevice = dst.device,
	        .dstPitch = PITCH,
	        .WidthInBytes = WIDTH,
	        .Height = HEIGHT};
}

static CUDA_MEMCPY3D form_3d(enum direction direction)
{
	struct end dst, src;

	ends(direction, &dst, &src);
	return (CUDA_MEMCPY3D){.srcXInBytes = 16,
	        .srcY = 1,
	        .srcMemoryType = src.type,
	        .srcHost = src.memory,
	        .srcDevice = src.device,
	        .srcPitch = PITCH,
	        .srcHeight = ROWS,
	        .dstXInBytes = 8,
	        .dstY = 2,
	        .dstZ = 1,
	        .dstMemoryType = dst.type,
	        .dstHost = dst.memory,
	        .dstDevice = dst.device,
	        .dstPitch = PITCH,
	        .dstHeight = ROWS,
	        .WidthInBytes = WIDTH,
	        .Height = HEIGHT,
	        .Depth = DEPTH};
}

static CUDA_MEMCPY3D_PEER form_peer(enum direction direction)
{
	CUDA_MEMCPY3D form = form_3d(direction);

	return (CUDA_MEMCPY3D_PEER){.srcXInBytes = form.srcXInBytes,
	        .srcY = form.srcY,
	        .srcMemoryType = form.srcMemoryType,
	        .srcHost = form.srcHost,
	        .srcDevice = form.srcDevice,
	        .srcContext = context,
	        .srcPitch = form.srcPitch,
	        .srcHeight = form.srcHeight,
	        .dstXInBytes = form.dstXInBytes,
	        .dstY = form.dstY,
	        .dstZ = form.dstZ,
	        .dstMemoryType = form.dstMemoryType,
	        .dstHost = form.dstHost,
	        .dstDevice = form.dstDevice,
	        .dstContext = context,
	        .dstPitch = form.dstPitch,
	        .dstHeight = form.dstHeight,
	        .WidthInBytes = form.WidthInBytes,
	        .Height = form.Height,
	        .Depth = form.Depth};
}

/* The addresses of a batch begin at the box. */
static CUDA_MEMCPY3D_BATCH_OP form_batch(enum direction direction)
{
	CUDA_MEMCPY3D_BATCH_OP form = {.extent = {WIDTH, HEIGHT, DEPTH},
	        .srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM};
	struct end dst, src;

	ends(direction, &dst, &src);
	form.src.type = form.dst.type = CU_MEMCPY_OPERAND_TYPE_POINTER;
	form.src.op.ptr.ptr =
	        (src.device ? src.device : (CUdeviceptr)(uintptr_t)src.memory) +
	        PITCH + 16;
	form.dst.op.ptr.ptr =
	        (dst.device ? dst.device : (CUdeviceptr)(uintptr_t)dst.memory) +
	        (ROWS + 2) * PITCH + 8;
	form.src.op.ptr.rowLength = form.dst.op.ptr.rowLength = PITCH;
	form.src.op.ptr.layerHeight = form.dst.op.ptr.layerHeight = ROWS;
	return form;
}

/* One call a direction; what comes down is looked at before the next. */
static CUresult each_way(CUresult (*one)(void *function, enum direction way),
        void *function, size_t depth)
{
	CUresult rc = CUDA_SUCCESS;

	for (int way = UP; way < DIRECTIONS && rc == CUDA_SUCCESS; way++) {
		rc = one(function, (enum direction)way);
		DRIVER(cuCtxSynchronize)();
		expect((enum direction)way, depth);
	}
	return rc;
}

static CUresult copy_2d_way(void *function, enum direction way)
{
	CUDA_MEMCPY2D copy = form_2d(way);

	return AS(cuMemcpy2D)(&copy);
}

static CUresult copy_2d(void *function)
{
	return each_way(copy_2d_way, function, 1);
}

static CUresult copy_2d_async_way(void *function, enum direction way)
{
	CUDA_MEMCPY2D copy = form_2d(way);

	return AS(cuMemcpy2DAsync)(&copy, NULL);
}

static CUresult copy_2d_async(void *function)
{
	return each_way(copy_2d_async_way, function, 1);
}

static CUresult copy_3d_way(void *function, enum direction way)
{
	CUDA_MEMCPY3D copy = form_3d(way);

	return AS(cuMemcpy3D)(&copy);
}

static CUresult copy_3d(void *function)
{
	return each_way(copy_3d_way, function, DEPTH);
}

static CUresult copy_3d_async_way(void *function, enum direction way)
{
	CUDA_MEMCPY3D copy = form_3d(way);

	return AS(cuMemcpy3DAsync)(&copy, NULL);
}

static CUresult copy_3d_async(void *function)
{
	return each_way(copy_3d_async_way, function, DEPTH);
}

static CUresult copy_peer_way(void *function, enum direction way)
{
	CUDA_MEMCPY3D_PEER copy = form_peer(way);

	return AS(cuMemcpy3DPeer)(&copy);
}

static CUresult copy_peer(void *function)
{
	return each_way(copy_peer_way, function, DEPTH);
}

static CUresult copy_peer_async_way(void *function, enum direction way)
{
	CUDA_MEMCPY3D_PEER copy = form_peer(way);

	return AS(cuMemcpy3DPeerAsync)(&copy, NULL);
}

static CUresult copy_peer_async(void *function)
{
	return each_way(copy_peer_async_way, function, DEPTH);
}

typedef CUresult batch_v1(size_t count, CUDA_MEMCPY3D_BATCH_OP *items,
        size_t *failed, unsigned long long flags, CUstream stream);

static CUresult copy_batch_old_way(void *function, enum direction way)
{
	CUDA_MEMCPY3D_BATCH_OP copy = form_batch(way);
	size_t failed;

	return ((batch_v1 *)function)(
	        1, &copy, &failed, 0, CU_STREAM_PER_THREAD);
}

static CUresult copy_batch_old(void *function)
{
	return each_way(copy_batch_old_way, function, DEPTH);
}

static CUresult copy_batch_way(void *function, enum direction way)
{
	CUDA_MEMCPY3D_BATCH_OP copy = form_batch(way);

	return AS(cuMemcpy3DBatchAsync)(1, &copy, 0, CU_STREAM_PER_THREAD);
}

static CUresult copy_batch(void *function)
{
	return each_way(copy_batch_way, function, DEPTH);
}

const struct row pitched_rows[] = {
        {"cuMemcpy2D_v2", copy_2d},
        {"cuMemcpy2D_v2_ptds", copy_2d},
        {"cuMemcpy2DUnaligned_v2", copy_2d},
        {"cuMemcpy2DUnaligned_v2_ptds", copy_2d},
        {"cuMemcpy2DAsync_v2", copy_2d_async},
        {"cuMemcpy2DAsync_v2_ptsz", copy_2d_async},
        {"cuMemcpy3D_v2", copy_3d},
        {"cuMemcpy3D_v2_ptds", copy_3d},
        {"cuMemcpy3DAsync_v2", copy_3d_async},
        {"cuMemcpy3DAsync_v2_ptsz", copy_3d_async},
        {"cuMemcpy3DPeer", copy_peer},
        {"cuMemcpy3DPeer_ptds", copy_peer},
        {"cuMemcpy3DPeerAsync", copy_peer_async},
        {"cuMemcpy3DPeerAsync_ptsz", copy_peer_async},
        {"cuMemcpy3DBatchAsync", copy_batch_old},
        {"cuMemcpy3DBatchAsync_ptsz", copy_batch_old},
        {"cuMemcpy3DBatchAsync_v2", copy_batch},
        {"cuMemcpy3DBatchAsync_v2_ptsz", copy_batch},
        {NULL, NULL},
};
