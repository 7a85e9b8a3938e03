import type { Frame } from '../sample.js';

export class StackNode {
  readonly children: StackNode[] = [];
  samples = 0;
  selfMs = 0;

  /** `key`: the same for the same function. `frame`: as it was first seen; null for a label, such as a route. */
  constructor(
    readonly key: string,
    readonly name: string,
    readonly frame: Frame | null,
  ) {}

  get totalMs(): number {
    return this.children.reduce((sum, child) => sum + child.totalMs, this.selfMs);
  }

  find(key: string): StackNode | undefined {
    return this.children.find((child) => child.key === key);
  }
}

export const OTHER = '(other)';
/** The node of the outermost calls of a stack that was cut. */
export const CUT = '(cut)';

/** Counts stacks by label (a route) in bounded memory: in a full tree a new function becomes `(other)` below its caller. */
export class StackTree {
  readonly root = new StackNode('', '(root)', null);
  private size = 1;

  constructor(private readonly maxNodes: number) {}

  /** `frames`: innermost first. Calls that only wait are left out, since they do not run. */
  add(label: string, frames: readonly Frame[], cut: boolean, ms: number): void {
    let node = this.enter(this.root, label);
    if (cut) node = this.enter(node, CUT);
    for (const frame of frames.filter(({ async }) => !async).toReversed())
      node = this.enter(node, formatKey(frame), nameFrame(frame), frame);
    node.samples += 1;
    node.selfMs += ms;
  }

  addTree({ root }: StackTree): void {
    this.addBelow(this.root, root.children);
  }

  private addBelow(node: StackNode, children: readonly StackNode[]): void {
    for (const { key, name, frame, samples, selfMs, children: below } of children) {
      const own = this.enter(node, key, name, frame);
      own.samples += samples;
      own.selfMs += selfMs;
      this.addBelow(own, below);
    }
  }

  private enter(parent: StackNode, key: string, name = key, frame: Frame | null = null): StackNode {
    if (parent.key === OTHER) return parent;
    const known = parent.find(key);
    if (known !== undefined) return known;
    if (this.size >= this.maxNodes && key !== OTHER) return this.enter(parent, OTHER);
    const node = new StackNode(key, name, frame);
    parent.children.push(node);
    this.size += 1;
    return node;
  }
}

/** Without a name or a first line, functions of one file differ by the line that runs. */
const formatKey = ({ name, file, functionLine, line }: Frame): string =>
  `${name}\n${file}\n${functionLine}\n${name !== null && functionLine > 0 ? '' : line}`;

/** `'ReportsService.render'`; empty for a function without a name, as in V8's own profiles. */
function nameFrame({ name, typeName = null }: Frame): string {
  if (name === null) return '';
  return typeName === null || typeName === '' || typeName === 'Object' || name.includes('.')
    ? name
    : `${typeName}.${name}`;
}
