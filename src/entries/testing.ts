export { memorySink, type MemorySink } from './testing/memory.sink.js';
export { settle } from './testing/settle.js';
