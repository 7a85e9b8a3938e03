export { record } from './record/record.js';
export type { RecordOptions } from '../recording/recording.options.js';
