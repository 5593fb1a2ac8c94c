/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "runtime/account.h"

CUresult ts_account_measure(const struct ts_account *account,
        uint64_t *ret_used_bytes, uint64_t *ret_total_bytes)
{
	size_t free_bytes = 0, total_bytes = 0;
	CUresult rc = ts_gpu_said("cuMemGetInfo",
	        account->ops->mem_get_info(&free_bytes, &total_bytes));

	if (rc != CUDA_SUCCESS)
		return rc;
	*ret_used_bytes =
	        total_bytes > free_bytes ? total_bytes - free_bytes : 0;
	*ret_total_bytes = total_bytes;
	return CUDA_SUCCESS;
}

void ts_account_note(struct ts_account *account, uint64_t used_bytes)
{
	if (used_bytes > account->peak_bytes)
		account->peak_bytes = used_bytes;
}
