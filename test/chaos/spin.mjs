import { cpus } from 'node:os'
import { Worker } from 'node:worker_threads'

/** Keeps every core busy, as other programs on a machine do; returns what ends it. */
export function startSpinning() {
  const spinners = cpus().map(() => new Worker('for (;;);', { eval: true }))
  return () => Promise.all(spinners.map(spinner => spinner.terminate()))
}
