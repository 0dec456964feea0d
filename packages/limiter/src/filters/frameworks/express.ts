import type { Request, Response } from 'express'
import type { Framework } from './framework.ts'
import { node } from './node.ts'
import { spelledPath } from './spelled-path.ts'

/** Express, 5 and 4. */
export const expressFramework: Framework<Request, Response> = {
  ...node,
  identity: request => request,
  // whatever is asked of a response of Express takes long, and what is ended has sent its headers
  isAnswered: response => response.headersSent,
  // routers cut what they are mounted on from `url`
  target: request => request.originalUrl,
  path: request => spelledPath(request.originalUrl),
  template: request => {
    const path: unknown = request.route?.path
    return typeof path === 'string' ? baseOf(request) + path : undefined
  },
  caseInsensitive,
  setHeader: (response, name, value) => {
    response.setHeader(name, value)
  },
}

function caseInsensitive({ app }: Request): boolean {
  return !app.enabled('case sensitive routing')
}

/** What the router of the route is mounted on, which is known only as the caller spelled it. */
function baseOf(request: Request): string {
  if (request.baseUrl === '') return ''
  const base = spelledPath(request.baseUrl)
  return caseInsensitive(request) ? base.toLowerCase() : base
}
