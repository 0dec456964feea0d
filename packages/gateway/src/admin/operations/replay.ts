import { dirname, resolve } from 'node:path'
import { adminOf } from 'diana-limiter/admin'
import { documentOf } from 'diana-limiter/gateway'
import { z } from 'diana-limiter/schema'
import { Refusal } from '../../http/refusal.ts'
import type { LogSource } from '../../replay/reading/log-chunks.ts'
import { endOfLog, textLog } from '../../replay/reading/text-log.ts'
import type { GatewaySettings } from '../../settings/gateway-settings.ts'
import { type AdminContext, type Operation, operation } from './operation.ts'
import { count, text, where } from './shapes.ts'

/** The longest log that can be sent; no more is read of the gateway's own log. */
const mostText = 1024 * 1024
const mostOwn = 32 * 1024 * 1024

const range = z.object({ least: count, most: count }).meta({ title: 'Range' })

export const replayOperations: readonly Operation[] = [
  operation({
    method: 'POST',
    path: '/replay',
    summary:
      'What a document would have done to the calls of an access log: one that is sent, or the end of the gateway’s own.',
    body: z.strictObject({
      where: where.default('local'),
      text,
      log: z
        .string()
        .max(mostText)
        .optional()
        .describe('lines of an access log; left out: the end of the gateway’s own'),
      format: z.string().max(4096).optional().describe('as diana replay --format'),
    }),
    answer: z
      .object({
        name: z.string(),
        format: z.string(),
        lines: count,
        bad: count,
        calls: count,
        refused: range,
        rules: z.array(
          z.object({
            id: z.string(),
            calls: count,
            refused: range,
            plots: z.string().describe('HTML with SVG, without scripts'),
          }),
        ),
        unjudged: z.array(z.object({ id: z.string(), missing: z.array(z.string()), remedy: z.string() })),
        notes: z.array(z.string()),
      })
      .meta({ title: 'LogReplay' }),
    refusals: { 422: 'the document or the log cannot be used' },
    run: async ({ body }, context) => {
      const { documents } = adminOf(context.limiter)
      const [mistake] = await documents.check(body.where, body.text)
      if (mistake) throw new Refusal(422, mistake.message)
      const document = await documents.consider(body.where, body.text)
      const source = body.log === undefined ? await ownLog(context) : textLog('the log', body.log)
      // its modules are as many as those of the rest of the admin API, and most gateways never replay
      const { judgeLog } = await import('../judge-log.ts')
      return await judgeLog(document!, source, body.format)
    },
  }),
]

/** Returns the file that the gateway writes its access log to. */
async function ownLog({ limiter }: AdminContext): Promise<LogSource> {
  const settings = documentOf(limiter).section('gateway') as GatewaySettings | undefined
  const to = settings?.accessLog?.to
  if (to === undefined || to === 'stdout' || to === 'stderr') {
    throw new Refusal(422, 'The gateway writes no access log to a file: set gateway.accessLog.to, or send a log.')
  }
  const { name } = await adminOf(limiter).documents.read('local')
  return await endOfLog(resolve(dirname(name), to), mostOwn)
}
