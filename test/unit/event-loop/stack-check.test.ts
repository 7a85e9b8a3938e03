import { describe, expect, it } from 'vitest';
import { captureFrames } from '../../../src/event-loop/interrupt/probe.js';
import { checkStacks, stacksObstacle } from '../../../src/event-loop/stack-check.js';

describe('what stacks prove is checked once in the real process', () => {
  it('and holds on this Node', async () => {
    expect(await stacksObstacle()).toBeNull();
    expect(stacksObstacle()).toBe(stacksObstacle());
  });

  it.each([18, 21, 23, 25, 27, 28])('but not on Node %i, which nobody has tested', async (major) => {
    expect(await checkStacks(major)).toBe(`nestjs-perf has not been tested on Node ${major}`);
  });

  it('but not where the names of waiting functions are missing', async () => {
    const nameless = () => captureFrames().map((frame) => ({ ...frame, name: null }));
    expect(await checkStacks(24, nameless)).toBe('stacks do not show the names of waiting functions');
  });

  it('but not where Node’s own files have other names', async () => {
    const renamed = () =>
      captureFrames().map((frame) => ({ ...frame, file: frame.file?.replace('node:', '') ?? null }));
    expect(await checkStacks(24, renamed)).toBe('stacks do not tell Node’s own files');
  });
});
