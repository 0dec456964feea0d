import * as z from '../../shapes/index.ts'
import { answerFaults, headerStyles } from '../answer-option.ts'
import type { Answer } from '../rule.ts'

const MAX_BODY = 65_536

/** The status of a refusal. */
export const statusSchema: z.NumberSchema = z.int().min(200).max(599)
const status = statusSchema.describe('The HTTP status of a refusal: 400 or more, or 200 with a body.')
const headers = z.enum(headerStyles).describe('The form of the rate-limit headers.')

const body = z
  .union([z.string().max(MAX_BODY), z.record(z.string(), z.unknown()), z.array(z.unknown())])
  .describe('What is sent: text, or what is sent as JSON; left out, problem details (RFC 9457).')

const contentType = z
  .string()
  .max(256)
  .regex(/^[\w.+-]+\/[\w.+-]+(?: *;[ -~]*)?$/, { error: 'must be a media type such as text/html; charset=utf-8' })
  .describe('The type of the body; left out, text/plain or application/json.')

const tokenHeaders = z
  .boolean()
  .describe('Adds x-ratelimit-limit-requests, x-ratelimit-limit-tokens and the like, as clients of LLM APIs read them.')

const more = {
  tokenHeaders: tokenHeaders.exactOptional(),
  body: body.exactOptional(),
  contentType: contentType.exactOptional(),
}

/** The schema for editors: a status below 400 needs a body. */
const forEditors = { anyOf: [{ properties: { status: { minimum: 400 } } }, { required: ['status', 'body'] }] }

/** The document's answer to refused calls. */
export const documentAnswerSchema: z.Schema<Answer> = sensible(
  z.strictObject({ status: status.default(503), headers: headers.default('draft-11'), ...more }),
)

/** A rule's own answer to refused calls. */
export const ruleAnswerSchema: z.Schema<Partial<Answer>> = sensible(
  z.strictObject({ status: status.exactOptional(), headers: headers.exactOptional(), ...more }),
)

function sensible<Output extends Partial<Answer>, Input>(schema: z.Schema<Output, Input>): z.Schema<Output, Input> {
  return schema.meta(forEditors).superRefine((answer, context) => {
    for (const [word, message] of answerFaults(answer)) context.addIssue({ code: 'custom', path: [word], message })
  })
}
