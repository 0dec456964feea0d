import type { CallReply } from '../../http/call.ts'
import { pathOf } from '../../http/called-path.ts'
import type { AnswerSettings, RedirectSettings } from '../../settings/routes/answer-settings.ts'

/** Answers a call to `target` without a service. */
export type OwnAnswer = (target: string, reply: CallReply) => void

export function staticAnswer({ status, body, headers }: AnswerSettings): OwnAnswer {
  const bytes = Buffer.from(body)
  const type = bytes.length > 0 ? { 'content-type': 'text/plain; charset=utf-8' } : {}
  return (_target, reply) => {
    reply
      .code(status)
      .headers({ ...type, ...headers })
      .send(bytes.length > 0 ? bytes : undefined)
  }
}

/** `restOf` takes the path of the route off a target. */
export function redirectAnswer(settings: RedirectSettings, restOf: (target: string) => string): OwnAnswer {
  return (target, reply) => {
    reply
      .code(settings.status)
      .header('location', locationOf(settings, target, restOf(pathOf(target))))
      .send()
  }
}

function locationOf({ to, keepPath, keepQuery }: RedirectSettings, target: string, rest: string): string {
  const query = keepQuery ? target.slice(pathOf(target).length) : ''
  // with two slashes in front, a path would be another host
  const added = keepPath ? rest.replace(/^\/+/, '/') : ''
  if (added === '' || added === '/') return to + query
  return (to.endsWith('/') ? to.slice(0, -1) : to) + added + query
}
