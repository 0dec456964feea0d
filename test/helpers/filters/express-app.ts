import { pipeline, Readable } from 'node:stream'
import type { Express, RequestHandler, Response } from 'express'
import type { FilterService } from '../../../packages/limiter/src/testing/filters/service.ts'

/** The service of the filter suite, on Express of either kind. */
export function serveOnExpress(app: Express, service: FilterService, login: RequestHandler): Express {
  app.get('/login', login, (_request, response) => void response.send(service.login()))
  app.get('/hello', (_request, response) => void response.send(service.hello()))
  app.get('/slow', (_request, response) => void service.slow().then(text => response.send(text)))
  app.get('/users/:id', (request, response) => void response.send(service.user(request.params.id)))
  app.get('/stream', (_request, response) => void pipeline(Readable.from(service.stream()), response, () => {}))
  app.get('/broken', () => service.broken())
  app.post('/echo', (request, response) => void pipeline(request, response, () => {}))
  // the last word of an application of its own: no stack in the log
  app.use((error: { status?: number }, _request: unknown, response: Response, _next: unknown) => {
    response.sendStatus(error.status ?? 500)
  })
  return app
}
