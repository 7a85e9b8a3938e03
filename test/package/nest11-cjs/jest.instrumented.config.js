// With the counters of a coverage tool in this package's own functions, as where it lies beside an application and not
// in node_modules, which is never instrumented. check/jest.cjs puts it there.
const { transform, ...base } = require('./jest.config.js');

module.exports = {
  ...base,
  // Files outside of it are never instrumented.
  rootDir: __dirname,
  roots: ['<rootDir>/src'],
  transform: { '^.+\\.ts$': 'ts-jest' },
  collectCoverage: true,
  coverageProvider: 'babel',
  moduleNameMapper: {
    '^nestjs-perf$': '<rootDir>/dist/beside/index.js',
    '^nestjs-perf/testing$': '<rootDir>/dist/beside/entries/testing.js',
  },
  forceCoverageMatch: ['**/dist/beside/**'],
  coverageDirectory: 'dist/coverage',
  coverageReporters: ['json-summary'],
};
