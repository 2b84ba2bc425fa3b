"""Weight formats of MoE experts: how bits become numbers. Ours only where ml-dtypes and gguf have nothing."""
