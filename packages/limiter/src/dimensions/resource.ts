import type { Call } from '../call.ts'
import { countedPath } from '../path.ts'
import type { Dimension } from './dimension.ts'

/** What is called: the framework's route template, or else the path. */
export const resource: Dimension = {
  name: 'resource',
  argument: 'none',
  read: call => call.resource ?? pathOf(call),
}

function pathOf({ path, resolvedPath, anyCase }: Call): string {
  const counted = countedPath(resolvedPath ?? path)
  return anyCase ? counted.toLowerCase() : counted
}
