import { Worker } from 'bullmq'
import { createLimiter } from 'diana-limiter'

/** A worker that sends letters, no account's faster than its limit. */
export async function startWorker(connection, send) {
  const limiter = await createLimiter({
    rules: [{ id: 'mail', match: 'none', by: 'account', limit: '2/300ms', algorithm: 'fixed-window' }],
  })
  const work = ({ data }) => limiter.jobs('mail', data.account).schedule(() => send(data))
  const worker = new Worker('mail', work, { connection, concurrency: 50 })
  worker.on('closed', () => limiter.close())
  return worker
}
