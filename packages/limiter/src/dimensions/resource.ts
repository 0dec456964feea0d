import { countedPath } from '../path.ts'
import type { Dimension } from './dimension.ts'

/** What is called: the framework's route template, or else the path. */
export const resource: Dimension = {
  name: 'resource',
  argument: 'none',
  read: call => call.resource ?? countedPath(call.path),
}
