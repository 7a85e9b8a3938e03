import { applicationPackage } from './application-package.js';

/** Where platforms and build servers put what is deployed; the first that is set counts. */
const VARIABLES = (
  'GIT_COMMIT SOURCE_VERSION COMMIT_SHA CI_COMMIT_SHA GITHUB_SHA RENDER_GIT_COMMIT ' +
  'RAILWAY_GIT_COMMIT_SHA VERCEL_GIT_COMMIT_SHA HEROKU_SLUG_COMMIT HEROKU_BUILD_COMMIT CODEBUILD_RESOLVED_SOURCE_VERSION ' +
  'SENTRY_RELEASE DD_VERSION K_REVISION GAE_VERSION'
).split(' ');

/** What is deployed: as the application says, else as its platform says, else its package's version. Null when nobody knows. */
export function releaseOf(given: string | null, environment: NodeJS.ProcessEnv = process.env): string | null {
  if (given !== null) return given;
  const name = VARIABLES.find((variable) => (environment[variable] ?? '').trim() !== '');
  return name === undefined ? (applicationPackage()?.version ?? null) : environment[name]!.trim();
}
