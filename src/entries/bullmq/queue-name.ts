import { applicationPackage } from '../../core/application-package.js';

/** `nestjs-perf-<name in the application's package.json>`: services that share a Redis have a queue each. */
export function defaultQueueName(): string {
  const found = applicationPackage();
  if (found === null) return 'nestjs-perf';
  // BullMQ allows no colon, and dashboards no slash.
  return `nestjs-perf-${found.name.replaceAll(/[^\w.-]+/g, '-').replace(/^-/, '')}`;
}
