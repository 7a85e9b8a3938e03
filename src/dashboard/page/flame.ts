/** The parts of a `.cpuprofile` that are drawn. */
export interface CpuProfile {
  readonly nodes: readonly {
    readonly id: number;
    readonly callFrame: { readonly functionName: string; readonly url: string; readonly lineNumber: number };
    readonly children: readonly number[];
  }[];
  readonly samples: readonly number[];
  /** Microseconds since the sample before. */
  readonly timeDeltas: readonly number[];
}

export interface Flame {
  readonly key: string;
  readonly name: string;
  /** `'src/reports.ts:48'`; null for what has none. */
  readonly place: string | null;
  readonly kind: 'own' | 'package' | 'native';
  readonly ms: number;
  /** The longest first. */
  readonly calls: readonly Flame[];
}

/** A function by its bare name, as a stack's line has it: a profile may have its class before it. */
export interface FunctionName {
  readonly name: string;
  readonly file: string;
}

/** The stacks of a profile of one route; `from`: below this function alone. Null without a sample. */
export function readFlame({ nodes, samples, timeDeltas }: CpuProfile, from: FunctionName | null): Flame | null {
  const selfMs = new Map<number, number>();
  // A node runs until the next one.
  for (const [index, id] of samples.entries())
    selfMs.set(id, (selfMs.get(id) ?? 0) + (timeDeltas[index + 1] ?? 0) / 1_000);
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const readCalls = (ids: readonly number[]): Flame[] =>
    ids
      .flatMap((id) => byId.get(id) ?? [])
      .map(read)
      .toSorted(byTime);
  const read = ({ id, callFrame: { functionName, url, lineNumber }, children }: CpuProfile['nodes'][number]): Flame => {
    const calls = readCalls(children);
    const isNative = url === '' || url.startsWith('node:');
    return {
      key: String(id),
      name: functionName || '(anonymous)',
      place: url === '' ? null : `${url}:${lineNumber + 1}`,
      kind: isNative ? 'native' : /(?:^|\/)node_modules\//.test(url) ? 'package' : 'own',
      ms: calls.reduce((sum, call) => sum + call.ms, selfMs.get(id) ?? 0),
      calls,
    };
  };
  const trees = readCalls(nodes[0]?.children ?? []);
  const shown = from === null ? trees : trees.flatMap((tree) => findCalls(tree, from)).toSorted(byTime);
  const [first, ...more] = shown;
  if (first === undefined || first.ms === 0) return null;
  if (more.length === 0) return from === null ? { ...first, name: 'all' } : first;
  const ms = shown.reduce((sum, flame) => sum + flame.ms, 0);
  const calls = shown.flatMap((flame) => flame.calls).toSorted(byTime);
  return { ...first, key: 'all', name: from?.name ?? 'all', ms, calls };
}

const byTime = (a: Flame, b: Flame): number => b.ms - a.ms;

/** The outermost calls of a function. */
function findCalls(flame: Flame, from: FunctionName): Flame[] {
  const isNamed = flame.name === from.name || flame.name.endsWith(`.${from.name}`);
  if (isNamed && flame.place?.startsWith(`${from.file}:`) === true) return [flame];
  return flame.calls.flatMap((call) => findCalls(call, from));
}
