/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/proof_outcome.h"

#include "agent/proof_closure_internal.h"
#include "agent/proof_internal.h"
#include "agent/remake_internal.h"

static bool any_proved(const struct ts_closures *closures)
{
	for (uint32_t i = 0; closures && i < closures->count; i++)
		if (closures->list[i].verdict == TS_VERDICT_PROVED)
			return true;
	return false;
}

/* Lock held. */
static enum ts_proof_outcome outcome(void)
{
	if (!ts_proof.step)
		return TS_PROOF_NOT_BEGUN;
	if (any_proved(ts_proof.closures))
		return TS_PROOF_OF_SOME;
	/* One that was given up has seen fewer steps. */
	return ts_proof.done < TS_PROOF_STEPS || ts_proof_is_pending()
	               ? TS_PROOF_NOT_ENDED
	               : TS_PROOF_OF_NONE;
}

enum ts_proof_outcome ts_proof_outcome(uint64_t *ret_made, uint64_t *ret_bytes)
{
	enum ts_proof_outcome ret;

	*ret_made = 0;
	*ret_bytes = 0;
	if (!ts_proof.on || !ts_proof_lock_at_exit())
		return TS_PROOF_NOT_BEGUN;
	*ret_made = ts_remake.made;
	*ret_bytes = ts_remake.bytes;
	ret = outcome();
	ts_mutex_unlock(&ts_proof.lock);
	return ret;
}
