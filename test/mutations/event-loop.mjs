const classify = 'src/event-loop/classify.ts';
const classifyTests = ['test/unit/event-loop/classify.test.ts'];
const watch = 'src/event-loop/loop-watch.ts';
const watchTests = ['test/unit/event-loop/loop-watch.test.ts'];

/** @type {import('./index.d.mts').Mutation[]} */
const rules = [
  {
    name: 'rule A off: a request is named whatever share of the window it was seen for',
    file: classify,
    find: 'const PROVEN_RATIO = 0.5;',
    replace: 'const PROVEN_RATIO = 0;',
    tests: classifyTests,
  },
  {
    name: 'two looks are enough',
    file: classify,
    find: 'const MIN_LOOKS = 3;',
    replace: 'const MIN_LOOKS = 2;',
    tests: classifyTests,
  },
  {
    name: 'a run is closed by the end of the window, not by its last look',
    file: classify,
    find: '  return [...claims.values()];\n}\n\nconst newClaim',
    replace:
      '  for (const claim of claims.values()) claim.provenMs += 100 - claim.looks.at(-1)!.servedMs;\n  return [...claims.values()];\n}\n\nconst newClaim',
    tests: classifyTests,
  },
  {
    name: 'looks that do not follow one another count as one run',
    file: classify,
    find: 'const follows = before !== null && before.state === look.state &&',
    replace: 'const follows = before !== null &&',
    tests: classifyTests,
  },
  {
    name: 'rule B off: any late look proves whose call it was',
    file: classify,
    find: '    } else if (showsItsCall(look)) {\n      claim.insideCall ||= showsNodeCall(look);',
    replace: '    } else if (waitedMs > LATE_MS) {\n      claim.insideCall = true;',
    tests: classifyTests,
  },
  {
    name: 'one late look proves alone, without Node’s own call in the stack',
    file: classify,
    find: 'claim.insideCall ||= showsNodeCall(look);',
    replace: 'claim.insideCall = true;',
    tests: classifyTests,
  },
  {
    name: 'a call of Node’s that was only just entered counts as made',
    file: classify,
    find: 'if (entered && file !== null',
    replace: 'if (file !== null',
    tests: classifyTests,
  },
  {
    name: 'the loop over microtasks counts as a caller',
    file: classify,
    find: "  'node:internal/process/task_queues',\n",
    replace: '',
    tests: classifyTests,
  },
  {
    name: 'lateness that the machine made counts as the request’s',
    file: classify,
    find: '    claim.provenMs -= doubtfulMs;\n',
    replace: '',
    tests: classifyTests,
  },
  {
    name: 'no starvation rule',
    file: classify,
    find: '  if (machine && !blockedAnyway) {',
    replace: '  if (false as boolean) {',
    tests: classifyTests,
  },
  {
    name: 'starvation is judged after garbage collection',
    file: classify,
    find: '  if (machine && !blockedAnyway) {',
    replace: '  if (machine && !blockedAnyway && evidence.gcRatio < GC_RATIO) {',
    tests: classifyTests,
  },
  {
    name: 'a request that used its threshold of CPU is excused by a slow machine',
    file: classify,
    find: '  if (machine && !blockedAnyway) {',
    replace: '  if (machine) {',
    tests: classifyTests,
  },
  {
    name: 'throttling without its threshold',
    file: classify,
    find: 'evidence.throttled && windowMs - heldBackMs < evidence.thresholdMs',
    replace: 'evidence.throttled',
    tests: classifyTests,
  },
  {
    name: 'garbage collection is judged after waiting',
    file: classify,
    find: '  if (evidence.gcRatio >= GC_RATIO) {',
    replace: '  if (evidence.gcRatio >= GC_RATIO && evidence.cpuRatio >= IDLE_CPU_RATIO) {',
    tests: classifyTests,
  },
  {
    name: 'garbage collection names who was running',
    file: classify,
    find: "cause: 'gc', culprit: null,",
    replace: "cause: 'gc', culprit: proven?.state ?? null,",
    tests: classifyTests,
  },
  {
    name: 'waiting for a CPU counts as sleeping',
    file: classify,
    find: ' && evidence.cpuRatio + notRunning < ON_CPU_RATIO;',
    replace: ';',
    tests: classifyTests,
  },
  {
    name: 'a request that had ended is proven to have blocked',
    file: classify,
    find: '!evidence.endedBefore(state) && ',
    replace: '',
    tests: classifyTests,
  },
  {
    name: 'the store is believed on shared connections',
    file: classify,
    find: '  if (beginsInSocketRead(look.frames)) return false;\n',
    replace: '',
    tests: classifyTests,
  },
  {
    name: 'the store is believed for what the request does not wait for',
    file: classify,
    find: "return look.source !== 'aside' || isCalledBack(look);",
    replace: 'return true;',
    tests: classifyTests,
  },
  {
    name: 'a request is not proven to have blocked in its own timer',
    file: classify,
    find: '  if (loop >= 0 && running[loop]!.file === TIMERS) return true;\n',
    replace: '',
    tests: classifyTests,
  },
  {
    name: 'a stack that is cut shows where it begins',
    file: classify,
    find: '  if (cut) return false;\n',
    replace: '',
    tests: classifyTests,
  },
  {
    name: 'a debugger’s pause is a block',
    file: classify,
    find: '  if (evidence.debugged && offCpu)',
    replace: '  if (evidence.debugged && false)',
    tests: classifyTests,
  },
];

/** @type {import('./index.d.mts').Mutation[]} */
const evidence = [
  {
    name: 'a look is kept though the loop has turned since it was asked for',
    file: 'src/event-loop/interrupt/probe.ts',
    find: '    if (message.seq !== this.words[SEQ]) return;\n',
    replace: '',
    tests: ['test/unit/event-loop/interrupt/probe.test.ts'],
  },
  {
    name: 'looks of an earlier standstill are given to a later one',
    file: 'src/event-loop/interrupt/probe.ts',
    find: '    if (this.seq !== seq) return [];\n',
    replace: '',
    tests: ['test/unit/event-loop/interrupt/probe.test.ts'],
  },
  {
    name: 'a slot keeps its request when that has settled',
    file: 'src/event-loop/interrupt/slots.ts',
    find: '      this.current = outer;\n',
    replace: '',
    tests: ['test/unit/event-loop/interrupt/slots.test.ts'],
  },
  {
    name: 'the store is believed where a waiting request says otherwise',
    file: 'src/event-loop/interrupt/identity.ts',
    find: '    if (waiting !== null && waiting !== stored) return null;\n',
    replace: '',
    tests: ['test/unit/event-loop/interrupt/slots.test.ts'],
  },
  {
    name: 'nobody asks whether the request of the store waits for something else',
    file: 'src/event-loop/interrupt/identity.ts',
    find: "(this.slots.waits(stored) ? 'aside' : 'store')",
    replace: "'store'",
    tests: ['test/unit/event-loop/interrupt/slots.test.ts'],
  },
  {
    name: 'time that the loop waited for events is part of a standstill',
    file: watch,
    find: 'const durationMs = toMs - fromMs - idleMs;',
    replace: 'const durationMs = toMs - fromMs;',
    tests: watchTests,
  },
  {
    name: 'a late turn is told with the standstill in it',
    file: watch,
    find: '    this.openSinceMs = toMs;\n    this.openIdleMs = this.gauges.idleMs();\n',
    replace: '',
    tests: watchTests,
  },
  {
    name: 'blocks are judged before the watchdog has told of its own lateness',
    file: 'src/event-loop/pending-blocks.ts',
    find: 'polls - standstill.polls >= MORE_POLLS',
    replace: 'polls - standstill.polls >= 0',
    tests: ['test/unit/event-loop/pending-blocks.test.ts'],
  },
];

/**
 * What the negative cases over real servers must notice: each is the rule's own test, asked of a whole application.
 * @type {import('./index.mjs').Mutation[]}
 */
const applications = [
  {
    name: 'blame on the first look, in an application',
    file: classify,
    find: 'claim.provenMs >= PROVEN_RATIO * windowMs && (claim.looks.length >= MIN_LOOKS || claim.insideCall)',
    replace: 'claim.state !== null && claim.looks.length > 0 && windowMs > 0 && MIN_LOOKS > PROVEN_RATIO',
    tests: ['test/e2e/event-loop.test.ts'],
    only: 'many short pieces|two equal halves',
  },
  {
    name: 'no starvation rule, in a process that is stopped',
    file: classify,
    find: '  if (machine && !blockedAnyway) {',
    replace: '  if (false as boolean) {',
    tests: ['test/faults/event-loop-machine.test.ts'],
    only: 'stopped',
  },
  {
    name: 'any request that waits is named, on one core with another program',
    file: 'src/event-loop/interrupt/slots.ts',
    find: 'this.byName.get(name);',
    replace: '[...this.byName.values()].find(({ state }) => state !== null);',
    tests: ['test/faults/event-loop-machine.test.ts'],
    only: 'one core',
  },
  {
    name: 'a watchdog in a worker thread, where it would see another thread’s stack',
    file: 'src/event-loop/watchdog.ts',
    find: "  if (!isMainThread) return 'the application runs in a worker thread';\n",
    replace: '',
    tests: ['test/faults/event-loop-worker.test.ts'],
  },
  {
    name: 'repeated blocks are told each time',
    file: 'src/sinks/block-lines.ts',
    find: '    known.count += 1;\n    known.totalMs += block.durationMs;\n    return false;',
    replace: '    known.count += 1;\n    known.totalMs += block.durationMs;\n    return true;',
    tests: ['test/e2e/repeated-blocks.test.ts'],
  },
  {
    name: 'a request is charged for all its time before another’s block',
    file: 'src/event-loop/event-loop.ts',
    find: 'state.delayedMs += ms;',
    replace: 'state.delayedMs += untilMs - state.startedMs;',
    tests: ['test/e2e/event-loop.test.ts'],
    only: 'add up',
  },
  {
    name: 'no rule for garbage collection, in an application',
    file: classify,
    find: '  if (evidence.gcRatio >= GC_RATIO) {',
    replace: '  if (false as boolean) {',
    tests: ['test/e2e/event-loop.test.ts'],
    only: 'garbage',
  },
  {
    name: 'collections are observed only from the end of a standstill on',
    file: 'src/event-loop/event-loop.ts',
    find: '    this.probe.onLook = ({ servedMs }) => this.gc.looked(servedMs);\n',
    replace: '',
    tests: ['test/faults/event-loop-attribution.test.ts'],
    only: 'first time',
  },
  {
    name: 'collections are observed without a look at the room on the stack',
    file: 'src/event-loop/interrupt/gc-observer.ts',
    find: 'this.sinceMs === Infinity && hasRoom()',
    replace: 'this.sinceMs === Infinity',
    tests: ['test/unit/event-loop/interrupt/gc-observer-at-stack-end.test.ts'],
  },
  {
    name: 'collections are not observed in a large heap',
    file: 'src/event-loop/interrupt/gc-observer.ts',
    find: 'this.bytes() >= this.largeBytes',
    replace: 'false as boolean',
    tests: ['test/unit/event-loop/interrupt/gc-observer.test.ts'],
  },
  {
    name: 'a window that was hardly observed is all garbage collection',
    file: 'src/event-loop/interrupt/gc-observer.ts',
    find: 'observedMs * 2 >= windowMs ? observedMs : windowMs',
    replace: 'observedMs',
    tests: ['test/unit/event-loop/interrupt/gc-observer.test.ts'],
  },
  {
    name: 'the watchdog keeps what it saw last, in a process that hangs',
    file: 'src/event-loop/watchdog.worker.ts',
    find: '      seen = null;\n    }',
    replace: '    }',
    tests: ['test/faults/watchdog-thread.test.ts'],
  },
  {
    name: 'the watchdog ends in the middle of a hang when it cannot read a map',
    file: 'src/event-loop/watchdog.worker.ts',
    find: '      return `${frame.file}:${frame.line}:${frame.column}`;',
    replace: "      throw new Error('no map');",
    tests: ['test/faults/watchdog-thread.test.ts'],
  },
];

export const eventLoop = [...rules, ...evidence, ...applications];
