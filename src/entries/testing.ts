export { memorySink, type MemorySink } from './testing/memory.sink.js';
export { overridePerfSinks } from './testing/override-sinks.js';
export { settle } from './testing/settle.js';
