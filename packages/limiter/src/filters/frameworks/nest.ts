import type { Request, Response } from 'express'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Refusal } from '../../answers/answer.ts'
import { expressFramework } from '../express.ts'
import { fastifyFramework } from './fastify.ts'
import type { Framework } from './framework.ts'

/** A request under Nest: Express's or Fastify's, as the application chose. */
export type NestRequest = Request | FastifyRequest
export type NestReply = Response | FastifyReply

const refusals = new WeakMap<NestReply, Refusal>()

const onExpress = leavingTheAnswer(expressFramework) as Framework<NestRequest, NestReply>
const onFastify = leavingTheAnswer(fastifyFramework) as Framework<NestRequest, NestReply>

/** Returns the framework under a Nest application, as its requests show it. */
export function frameworkUnder(request: NestRequest): Framework<NestRequest, NestReply> {
  return 'raw' in request ? onFastify : onExpress
}

/** Returns the answer to a refused caller, once. */
export function refusalOf(reply: NestReply): Refusal | undefined {
  return refusals.get(reply)
}

/** Leaves the answer to Nest, which answers what its guards refuse, so that exception filters of the application apply. */
function leavingTheAnswer<R, Reply extends NestReply>(framework: Framework<R, Reply>): Framework<R, Reply> {
  return {
    ...framework,
    refuse: (_request, reply, refusal) => {
      for (const [name, value] of refusal.headers) {
        // Nest sets application/json, and warns of any other type
        if (name !== 'Content-Type') framework.setHeader(reply, name, value)
      }
      refusals.set(reply, refusal)
    },
    abandon: () => {},
  }
}
