// With the counters of a coverage tool in this package's own functions.
const { transform, ...base } = require('./jest.config.js');

module.exports = {
  ...base,
  // Files outside of it are never instrumented.
  rootDir: __dirname,
  roots: ['<rootDir>/src'],
  transform: { '^.+\\.ts$': 'ts-jest' },
  collectCoverage: true,
  coverageProvider: 'babel',
  forceCoverageMatch: ['**/node_modules/nestjs-perf/**'],
  coverageDirectory: 'dist/coverage',
  coverageReporters: ['json-summary'],
};
