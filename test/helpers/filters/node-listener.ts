import type { IncomingMessage, ServerResponse } from 'node:http'
import { pipeline, Readable } from 'node:stream'
import type { FilterService } from '../../../packages/limiter/src/testing/filters/service.ts'

/** The service of the filter suite, on Node's own requests and responses. */
export function nodeListener(service: FilterService): (request: IncomingMessage, response: ServerResponse) => void {
  return (request, response) => {
    const path = request.url!.split('?')[0]!
    const [, first, second] = path.split('/')
    const method = request.method === 'HEAD' ? 'GET' : request.method
    try {
      if (method !== (path === '/echo' ? 'POST' : 'GET')) response.writeHead(404).end()
      else if (path === '/hello') response.end(service.hello())
      else if (path === '/slow') service.slow().then(text => response.end(text))
      else if (path === '/stream') pipeline(Readable.from(service.stream()), response, () => {})
      else if (path === '/broken') service.broken()
      else if (path === '/echo') pipeline(request, response, () => {})
      else if (first === 'users' && second) response.end(service.user(decoded(second)))
      else response.writeHead(404).end()
    } catch {
      response.writeHead(500).end()
    }
  }
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
