import type { Call } from '../call.ts'
import { isAmbiguousPath, resourcePath } from '../http/path-readings.ts'
import type { Dimension } from './dimension.ts'

/** The called resource: the framework's route template, or else the path. */
export const resource: Dimension = {
  name: 'resource',
  argument: 'none',
  field: 'resource',
  read,
  readerOf: () => read,
  ambiguityOf: () => isAmbiguous,
}

function read(call: Call): string {
  return call.resource ?? pathOf(call)
}

function pathOf({ path, caseInsensitive }: Call): string {
  const counted = resourcePath(path)
  return caseInsensitive ? counted.toLowerCase() : counted
}

function isAmbiguous({ resource: template, path, otherPath }: Call): boolean {
  return template === undefined && (otherPath !== undefined || isAmbiguousPath(path))
}
