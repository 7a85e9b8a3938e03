/** How one version of cgroups names what the memory controller counts. Bytes throughout. */
export interface MemoryFiles {
  usage: string;
  limit: string;
  /** Above it the kernel throttles and reclaims. v1's soft limit is something else. */
  high: string | null;
  peak: string;
  /** Kernel memory, where it is a file and not a line of `memory.stat`. */
  kernel: string | null;
  /** Holds the count of OOM kills. */
  oom: string;
  /** Lines of `memory.stat`. */
  stat: {
    inactiveFile: string;
    anon: string;
    file: string;
    kernel: string | null;
    /** Their sum is kernel memory before Linux 5.18 had a line for it. */
    kernelParts: readonly string[];
    /** The lowest limit up the tree, ancestors that cannot be seen included. */
    hierarchicalLimit: string | null;
  };
}

/** Descendants count too, hence `total_`: the kubelet reads the same lines. */
const V1: MemoryFiles = {
  usage: 'memory.usage_in_bytes',
  limit: 'memory.limit_in_bytes',
  high: null,
  peak: 'memory.max_usage_in_bytes',
  kernel: 'memory.kmem.usage_in_bytes',
  oom: 'memory.oom_control',
  stat: {
    inactiveFile: 'total_inactive_file',
    anon: 'total_rss',
    file: 'total_cache',
    kernel: null,
    kernelParts: [],
    hierarchicalLimit: 'hierarchical_memory_limit',
  },
};

const V2: MemoryFiles = {
  usage: 'memory.current',
  limit: 'memory.max',
  high: 'memory.high',
  peak: 'memory.peak',
  kernel: null,
  oom: 'memory.events',
  stat: {
    inactiveFile: 'inactive_file',
    anon: 'anon',
    file: 'file',
    kernel: 'kernel',
    kernelParts: ['slab', 'kernel_stack', 'pagetables', 'percpu'],
    hierarchicalLimit: null,
  },
};

export const MEMORY_FILES: Readonly<Record<'v1' | 'v2', MemoryFiles>> = { v1: V1, v2: V2 };
