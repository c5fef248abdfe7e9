"""Growing the pool size by size, looked at before and after each: what is red stays small."""
