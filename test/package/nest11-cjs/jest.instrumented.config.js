// With counters of a coverage tool in this package's own functions.
const { transform, ...base } = require('./jest.config.js');

module.exports = {
  ...base,
  transform: { '^.+\\.ts$': 'ts-jest' },
  collectCoverage: true,
  coverageProvider: 'babel',
  collectCoverageFrom: ['../node_modules/nestjs-perf/dist/cjs/**/*.js'],
  coveragePathIgnorePatterns: [],
  coverageDirectory: '../coverage',
  coverageReporters: ['json-summary'],
};
