import { usual } from '../fixtures/usual.js';

// The sampler's thread of each application takes longer than most tests: suites that need it call `withEventLoop()`.
usual.perf = { eventLoop: false };
