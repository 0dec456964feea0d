import type { Attributes, Meter, TraceAPI } from '@opentelemetry/api'
import { engineOf } from '../engine/engine-of.ts'
import type { Limiter } from '../limiter.ts'
import { durationBounds } from '../stats/durations.ts'
import type { Verdict } from '../verdict.ts'
import { durationName, measures } from './measure.ts'

/** The parts of OpenTelemetry's API: `metrics.getMeter('diana-limiter')` and `trace`; each may be left out. */
export interface Telemetry {
  readonly meter?: Meter | undefined
  readonly trace?: Pick<TraceAPI, 'getActiveSpan'> | undefined
}

/** Reports a limiter through OpenTelemetry; without an SDK its API does nothing. Returns what ends it. */
export function instrument(limiter: Limiter, { meter, trace }: Telemetry): () => void {
  const ending = [meter && report(limiter, meter), trace && annotate(limiter, trace)]
  return () => {
    for (const end of ending) end?.()
  }
}

function report(limiter: Limiter, meter: Meter): () => void {
  const ending = measures.map(({ otelName, unit, kind, help, read }) => {
    const options = { unit, description: help }
    const instrument =
      kind === 'counter'
        ? meter.createObservableCounter(otelName, options)
        : meter.createObservableGauge(otelName, options)
    const observe: Parameters<typeof instrument.addCallback>[0] = result => {
      for (const { labels, value } of read(engineOf(limiter).stats(), limiter.status())) result.observe(value, labels)
    }
    instrument.addCallback(observe)
    return () => instrument.removeCallback(observe)
  })
  const duration = meter.createHistogram(durationName.otelName, {
    unit: 's',
    description: durationName.help,
    advice: { explicitBucketBoundaries: [...durationBounds] },
  })
  ending.push(engineOf(limiter).observers.observe({ onTimed: (seconds, store) => duration.record(seconds, { store }) }))
  return () => {
    for (const end of ending) end()
  }
}

/** Adds the decision to the span of each call; a refusal is not an error of the server. */
function annotate(limiter: Limiter, trace: Pick<TraceAPI, 'getActiveSpan'>): () => void {
  return engineOf(limiter).observers.observe({
    onVerdict: verdict => {
      const span = trace.getActiveSpan()
      if (span?.isRecording()) span.setAttributes(attributesOf(verdict))
    },
  })
}

function attributesOf({ allowed, rule, reason, waitMs, retryAfterMs }: Verdict): Attributes {
  const attributes: Attributes = { 'diana.rate_limiting.result': allowed ? 'acquired' : 'refused' }
  if (rule !== undefined) attributes['diana.rate_limiting.rule'] = rule
  if (reason !== undefined) attributes['diana.rate_limiting.reason'] = reason
  if (waitMs > 0) attributes['diana.rate_limiting.time_in_queue'] = waitMs / 1000
  if (Number.isFinite(retryAfterMs) && !allowed) attributes['diana.rate_limiting.retry_after'] = retryAfterMs / 1000
  return attributes
}
