import type { Dimension } from './dimension.ts'

/** The method, in upper case; HEAD counts as GET, since it asks the service for the same work. */
export const method: Dimension = {
  name: 'method',
  argument: 'none',
  field: 'method',
  read: call => {
    const name = call.method.toUpperCase()
    return name === 'HEAD' ? 'GET' : name
  },
}
