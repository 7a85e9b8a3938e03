// So many routes of one controller, and a path for each.
import { Controller, Get } from '@nestjs/common';
import { decorate, decorateMethod, makeUser } from '../overhead/application.mjs';

const listNames = (count) => Array.from({ length: count }, (_, i) => `resource-${i}`);
export const listPaths = (count) => listNames(count).map((name) => `/${name}/42`);

export function buildController(count) {
  class ResourcesController {}
  for (const name of listNames(count)) {
    ResourcesController.prototype[name] = () => makeUser('42');
    decorateMethod(ResourcesController, name, Get(`${name}/:id`));
  }
  decorate(ResourcesController, Controller());
  return ResourcesController;
}
