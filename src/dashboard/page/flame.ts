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

/** A function, below one caller. */
export interface Flame {
  readonly key: string;
  readonly name: string;
  /** `'src/reports.ts:48'`; null for what has none. */
  readonly place: string | null;
  readonly kind: 'own' | 'package' | 'native';
  /** With its calls. */
  readonly ms: number;
  /** The longest first. */
  readonly calls: readonly Flame[];
}

/** The stacks of a profile of one route; `from`: below this function alone. Null without a sample. */
export function readFlame(
  { nodes, samples, timeDeltas }: CpuProfile,
  from: { readonly name: string; readonly file: string } | null,
): Flame | null {
  const selfMs = new Map<number, number>();
  // A node runs until the next one.
  for (const [index, id] of samples.entries())
    selfMs.set(id, (selfMs.get(id) ?? 0) + (timeDeltas[index + 1] ?? 0) / 1_000);
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const findNodes = (ids: readonly number[]) => ids.flatMap((id) => byId.get(id) ?? []);
  const read = ({ id, callFrame, children }: CpuProfile['nodes'][number]): Flame => {
    const { functionName, url, lineNumber } = callFrame;
    const place = url === '' ? null : `${url}:${lineNumber + 1}`;
    const name = functionName === '' ? '(anonymous)' : functionName;
    const calls = findNodes(children)
      .map(read)
      .toSorted((a, b) => b.ms - a.ms);
    const ms = calls.reduce((sum, call) => sum + call.ms, selfMs.get(id) ?? 0);
    const kind = place === null || url.startsWith('node:') ? 'native' : isPackage(url) ? 'package' : 'own';
    return { key: String(id), name, place, kind, ms, calls };
  };
  const [root] = nodes;
  const trees = findNodes(root?.children ?? []).map(read);
  const shown = from === null ? trees : trees.flatMap((tree) => below(tree, from));
  const [first, ...more] = shown.toSorted((a, b) => b.ms - a.ms);
  if (first === undefined || first.ms === 0) return null;
  if (more.length === 0) return from === null ? { ...first, name: 'all' } : first;
  const ms = shown.reduce((sum, flame) => sum + flame.ms, 0);
  return {
    ...first,
    key: 'all',
    name: from?.name ?? 'all',
    ms,
    calls: shown.flatMap(({ calls }) => calls).toSorted((a, b) => b.ms - a.ms),
  };
}

const isPackage = (url: string): boolean => /(?:^|\/)node_modules\//.test(url);

/** The outermost calls of a function: a stack's line has its bare name, a profile may have its class before it. */
function below(flame: Flame, from: { readonly name: string; readonly file: string }): Flame[] {
  const isSame = flame.name === from.name || flame.name.endsWith(`.${from.name}`);
  if (isSame && flame.place?.startsWith(`${from.file}:`) === true) return [flame];
  return flame.calls.flatMap((call) => below(call, from));
}
