import { attach } from './attachment.js';
import type { ResourceSample } from './record.js';

/** CPU and memory of now, at the price of reading them. */
export const SAMPLE_NOW = attach<() => ResourceSample>('application');
