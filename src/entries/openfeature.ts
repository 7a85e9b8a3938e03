export { openFeatureGates, type OpenFeatureClient } from './openfeature/gates.js';
