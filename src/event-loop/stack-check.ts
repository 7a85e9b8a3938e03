import { captureFrames } from './interrupt/probe.js';

/** The majors of Node whose stacks the tests have seen. Elsewhere nobody is proven to have blocked, only suspected. */
const TESTED_MAJORS: readonly number[] = [20, 22, 24, 26];

let checked: Promise<string | null> | null = null;

/** Why stacks prove nothing in this process, or null when they do. Asked once a process; never rejects. */
export function stacksObstacle(): Promise<string | null> {
  return (checked ??= checkStacks(parseInt(process.versions.node, 10)));
}

/** Whether a stack shows who waits, by name, and which calls are Node's own. */
export async function checkStacks(major: number, capture = captureFrames): Promise<string | null> {
  if (!TESTED_MAJORS.includes(major)) return `nestjs-perf has not been tested on Node ${major}`;
  let calledByNode = false;
  const look = async (): Promise<boolean> => {
    await new Promise<void>((resolve) => {
      setImmediate(() => {
        calledByNode = capture().some(({ file }) => file?.startsWith('node:') === true);
        resolve();
      });
    });
    return capture().some(({ name, async }) => async && name === WAITING);
  };
  const waiting = async (): Promise<boolean> => await look();
  Object.defineProperty(waiting, 'name', { value: WAITING });
  if (!(await waiting())) return 'stacks do not show the names of waiting functions';
  return calledByNode ? null : 'stacks do not tell Node’s own files';
}

const WAITING = 'perf:waiting';
