const block = 'src/event-loop/block.ts';
const blockTests = ['test/unit/event-loop/block.test.ts'];
const causeTests = ['test/unit/event-loop/block-cause.test.ts'];
const sample = 'src/event-loop/sample.ts';
const sampleTests = ['test/unit/event-loop/sample.test.ts'];
const probe = 'src/event-loop/interrupt/probe.ts';
const probeTests = ['test/unit/event-loop/interrupt/probe.test.ts'];

export const eventLoop = [
  {
    name: 'a request is named whatever share of the block it has',
    file: block,
    find: 'sumMs(most) < HALF * codeMs',
    replace: 'sumMs(most) < 0 * codeMs',
    tests: blockTests,
  },
  {
    name: 'two with the same share: the first is named',
    file: block,
    find: ' || sumMs(most) === sumMs(next)',
    replace: '',
    tests: blockTests,
  },
  {
    name: 'samples count alike, whatever time they represent',
    file: block,
    find: 'ms: gapMs + sample.atMs - askedMs',
    replace: 'ms: 1',
    tests: blockTests,
  },
  {
    name: 'a request that had ended is named',
    file: block,
    find: 'if (state !== null && isInFlight(state, atMs)) ran.add(state);',
    replace: 'if (state !== null) ran.add(state);',
    tests: blockTests,
  },
  {
    name: 'an idle loop counts as the code of the last request',
    file: block,
    find: '  !isIdle(sample) ||',
    replace: '  true ||',
    tests: blockTests,
  },
  {
    name: 'the context of a shared handle is believed',
    file: block,
    find: 'isCalledBySharedHandle(sample) || (isLate',
    replace: '(isLate',
    tests: blockTests,
  },
  {
    name: 'the function behind a native call is believed',
    file: block,
    find: ' || (isLate(sample) && isOnlyResumed(sample))',
    replace: '',
    tests: blockTests,
  },
  {
    name: 'samples of the end of a block name a request for all of it',
    file: block,
    find: 'const LEAST_OF_BLOCK = 0.4;',
    replace: 'const LEAST_OF_BLOCK = 0;',
    tests: blockTests,
  },
  {
    name: 'the loop over promises counts as a shared handle',
    file: sample,
    find: 'return caller !== undefined && !isIn(caller, OWN_CONTEXT);',
    replace: 'return caller !== undefined;',
    tests: sampleTests,
  },
  {
    name: 'a synchronous call above the application counts as its caller',
    file: sample,
    find: 'running.slice(running.findIndex((frame) => frame.file !== null && !isNodes(frame)) + 1)',
    replace: 'running',
    tests: sampleTests,
  },
  {
    name: 'WebAssembly counts as the application’s file',
    file: sample,
    find: 'node:|wasm:|',
    replace: 'node:|',
    tests: sampleTests,
  },
  {
    name: 'no starvation rule',
    file: block,
    find: '  if (isStarved && !blockedAnyway) return',
    replace: '  if (isStarved && !isStarved) return',
    tests: causeTests,
  },
  {
    name: 'a request that used its threshold of CPU is excused by a slow machine',
    file: block,
    find: '  if (isStarved && !blockedAnyway) return',
    replace: '  if (isStarved) return',
    tests: causeTests,
  },
  {
    name: 'one sample is enough where the machine was slow',
    file: block,
    find: 'isCertain && isSeenOften && cpuRatio',
    replace: 'isCertain && cpuRatio',
    tests: causeTests,
  },
  {
    name: 'the machine is at fault where it took any time',
    file: block,
    find: 'windowMs - lostMs < thresholdMs',
    replace: 'lostMs > 0',
    tests: causeTests,
  },
  {
    name: 'garbage collection is judged after waiting',
    file: block,
    find: '  if (gcMs >= HALF * windowMs) return',
    replace: '  if (gcMs >= HALF * windowMs && !asleep) return',
    tests: causeTests,
  },
  {
    name: 'waiting for a CPU counts as sleeping',
    file: block,
    find: ' && cpuRatio + lost < HALF;',
    replace: ';',
    tests: causeTests,
  },
  {
    name: 'a request that may be the cause is counted as delayed',
    file: block,
    find: 'const othersWaited = request !== null || (votes.isBackground && isKnown);',
    replace: 'const othersWaited = true;',
    tests: causeTests,
  },
  {
    name: 'a debugger’s pause is a block',
    file: block,
    find: '  if (evidence.debugged && asleep) return null;\n',
    replace: '',
    tests: causeTests,
  },
  {
    name: 'a request of another application is taken for an own one',
    file: probe,
    find: 'if (stored === undefined || stored.owner !== this.application) return;',
    replace: 'if (stored === undefined) return;',
    tests: probeTests,
  },
  {
    name: 'the caller of a deep stack is cut off',
    file: probe,
    find: 'if (cut && i === INNERMOST) i = length - OUTERMOST;',
    replace: 'if (cut && i === INNERMOST) break;',
    tests: probeTests,
  },
];
