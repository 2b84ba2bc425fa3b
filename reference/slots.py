"""Host slots: first-fit allocation in whole pages (FACTS.md section 1.2).

SGLang asserts what is refused here with ValueError.
"""

from __future__ import annotations

import torch

from reference import checks
from reference.transfer.indices import check_index


class SlotAllocator:
    """Free list of `slots` slots, handed out from its front, `page_size` at a time; freed slots go to its end."""

    def __init__(self, slots: int, page_size: int) -> None:
        checks.multiple_of("slots", slots, page_size, "the page size")
        self.slots = slots
        self.page_size = page_size
        self.clear()

    def clear(self) -> None:
        """Forget every allocation."""
        self._free = torch.arange(self.slots, dtype=torch.int64)
        self._used = torch.zeros(self.slots, dtype=torch.bool)

    def available_size(self) -> int:
        """Free slots."""
        return len(self._free)

    def alloc(self, need_size: int) -> torch.Tensor | None:
        """Return int64 (need_size,) slots, or None when there are not so many.

        Raises ValueError when need_size is negative or no whole pages.
        """
        checks.at_least("need_size", need_size, 0)
        checks.multiple_of("need_size", need_size, self.page_size, "slots are handed out in pages")
        if need_size > len(self._free):
            return None
        taken, self._free = self._free[:need_size].clone(), self._free[need_size:]
        if bool(self._used[taken].any()):
            msg = f"double alloc: slots {taken[self._used[taken]].tolist()} are in use already"
            raise ValueError(msg)
        self._used[taken] = True
        return taken

    def free(self, indices: torch.Tensor) -> int:
        """Give slots back; return their count.

        Raises ValueError for slots that are not in use or named twice, IndexError for slots outside the pool.
        """
        indices = indices.cpu()
        check_index("indices", indices, self.slots)
        unused = indices[~self._used[indices]].tolist()
        if unused:
            msg = f"double free: slots {unused} of indices are not allocated"
            raise ValueError(msg)
        if len(set(indices.tolist())) < len(indices):
            msg = f"double free: indices={indices.tolist()} names a slot twice"
            raise ValueError(msg)
        self._used[indices] = False
        self._free = torch.cat([self._free, indices])
        return len(indices)
