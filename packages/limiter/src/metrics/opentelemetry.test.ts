import { context, metrics as metricsApi, trace } from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics'
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createLimiter } from '../create/create-limiter.ts'
import { instrument } from './opentelemetry.ts'

const call = { method: 'GET', path: '/', ip: '203.0.113.77' }

async function createOne() {
  const limiter = await createLimiter({ rules: [{ id: 'each', by: 'ip', limit: '3/m' }] })
  onTestFinished(() => limiter.close())
  return limiter
}

describe('OpenTelemetry', () => {
  it('OpenTelemetry gets the statistics and the durations of decisions', async () => {
    const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE)
    const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 3_600_000 })
    const provider = new MeterProvider({ readers: [reader] })
    const limiter = await createOne()
    const end = instrument(limiter, { meter: provider.getMeter('diana-limiter') })
    for (let i = 0; i < 256; i++) await limiter.check(call)
    await provider.forceFlush()
    const told = exporter.getMetrics()[0]!.scopeMetrics[0]!.metrics
    const points = (name: string) =>
      told
        .find(({ descriptor }) => descriptor.name === name)
        ?.dataPoints.map(({ attributes, value }) => ({ ...attributes, value }))
    expect(points('diana.rate_limiting.requests')).toEqual([
      { rule: 'each', decision: 'allow', value: 3 },
      { rule: 'each', decision: 'deny', value: 253 },
    ])
    expect(points('diana.rate_limiting.decision.duration')).toMatchObject([{ store: 'memory', value: { count: 2 } }])
    expect(JSON.stringify(told)).not.toContain('203.0')
    end()
    await provider.shutdown()
  })

  it('the span of a call has the decision', async () => {
    const exporter = new InMemorySpanExporter()
    const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] })
    context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())
    onTestFinished(() => context.disable())
    const limiter = await createOne()
    const end = instrument(limiter, { trace })
    const tracer = provider.getTracer('test')
    for (let i = 0; i < 4; i++) {
      await tracer.startActiveSpan('request', async span => {
        await limiter.check(call)
        span.end()
      })
    }
    const attributes = exporter.getFinishedSpans().map(span => span.attributes)
    expect(attributes[0]).toEqual({ 'diana.rate_limiting.result': 'acquired' })
    expect(attributes[3]).toMatchObject({
      'diana.rate_limiting.result': 'refused',
      'diana.rate_limiting.rule': 'each',
      'diana.rate_limiting.reason': 'limit',
    })
    end()
    await tracer.startActiveSpan('after', async span => {
      await limiter.check(call)
      span.end()
    })
    expect(exporter.getFinishedSpans().at(-1)?.attributes).toEqual({})
  })

  it('the instrumentation has no effect without an OpenTelemetry SDK', async () => {
    const limiter = await createOne()
    const end = instrument(limiter, { meter: metricsApi.getMeter('diana-limiter'), trace })
    expect((await limiter.check(call)).allowed).toBe(true)
    end()
  })
})
