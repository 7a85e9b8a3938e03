// So many routes of one controller, and a path for each.
import { Controller, Get } from '@nestjs/common';
import { decorate, decorateMethod, userOf } from '../overhead/application.mjs';

const namesOf = (count) => Array.from({ length: count }, (_, i) => `resource-${i}`);
export const pathsOf = (count) => namesOf(count).map((name) => `/${name}/42`);

export function controllerOf(count) {
  class ResourcesController {}
  for (const name of namesOf(count)) {
    ResourcesController.prototype[name] = () => userOf('42');
    decorateMethod(ResourcesController, name, Get(`${name}/:id`));
  }
  decorate(ResourcesController, Controller());
  return ResourcesController;
}
