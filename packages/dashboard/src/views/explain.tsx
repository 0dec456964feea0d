import type { JSX } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { api } from '../api/api.ts'
import type { Decision, Estimate, Explanation, KeyPart, RuleExplanation } from '../api/generated.ts'
import type { Problem } from '../api/problem.ts'
import { formatDuration, formatLatency, formatNumber } from '../i18n/format.ts'
import { viewMessages } from '../i18n/views/index.ts'
import { problemOf, Refusal } from '../parts/answer.tsx'
import { KeyText } from '../parts/key-text.tsx'
import { route } from '../route.ts'
import { limitText } from '../rules/limit-text.ts'

const EXAMPLE = "curl -X POST http://127.0.0.1:8080/orders -H 'x-account-id: ann'"

/** Shows why a caller was refused: an operator pastes the request. */
export function Explain(): JSX.Element {
  const { explain: texts } = viewMessages.value
  const [request, setRequest] = useState('')
  const [address, setAddress] = useState('')
  const [answer, setAnswer] = useState<Explanation | undefined>(undefined)
  const [problem, setProblem] = useState<Problem | undefined>(undefined)
  const [kind, caller] = route.value.rest
  const show = (asked: Promise<Explanation>) =>
    asked.then(
      explanation => {
        setAnswer(explanation)
        setProblem(undefined)
        if (explanation.request !== undefined) setRequest(explanation.request)
        if (explanation.request !== undefined) setAddress(explanation.call.ip ?? '')
      },
      error => setProblem(problemOf(error)),
    )
  const ask = () => show(api.explain(request.trim() || EXAMPLE, address.trim() || undefined))
  // the address of the page may name a caller, whose last call is explained
  useEffect(() => {
    if (kind === 'caller' && caller !== undefined) show(api.explainCaller(caller))
  }, [kind, caller])
  return (
    <>
      <p class="intro">{texts.intro}</p>
      <form
        class="panel ask"
        onSubmit={event => {
          event.preventDefault()
          ask()
        }}
      >
        <label>
          <span>{texts.label}</span>
          <textarea
            rows={4}
            spellcheck={false}
            autocapitalize="off"
            placeholder={EXAMPLE}
            value={request}
            onInput={event => setRequest(event.currentTarget.value)}
            onKeyDown={event => {
              if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) ask()
            }}
          />
        </label>
        <label class="address">
          <span>{texts.fromAddress}</span>
          <input
            value={address}
            placeholder="127.0.0.1"
            spellcheck={false}
            onInput={event => setAddress(event.currentTarget.value)}
          />
        </label>
        <button type="submit">{texts.ask}</button>
      </form>
      {problem && <Refusal problem={problem} />}
      {answer && <Outcome explanation={answer} />}
    </>
  )
}

function Outcome({ explanation }: { explanation: Explanation }): JSX.Element {
  const { explain: texts } = viewMessages.value
  const { call, rules, allowed, refusedBy, answer } = explanation
  return (
    <section class={`panel outcome ${allowed ? 'well' : 'ill'}`} aria-live="polite">
      <p class="verdict">
        {allowed ? texts.passes : texts.refused(refusedBy ?? '')}
        {!allowed && answer?.status !== undefined && <small> {answer.status}</small>}
      </p>
      <p class="call">
        <code>
          {call.method} {call.path}
        </code>
        {call.ip !== undefined && (
          <span>
            {' '}
            {texts.from} {call.ip}
          </span>
        )}
      </p>
      {rules.length === 0 && <p class="empty">{texts.meetsNone}</p>}
      <ol class="met">
        {rules.map(rule => (
          <Met key={rule.rule} met={rule} />
        ))}
      </ol>
    </section>
  )
}

function Met({ met }: { met: RuleExplanation }): JSX.Element {
  const { callers, explain: texts } = viewMessages.value
  const parts = Object.entries(met.key)
  return (
    <li>
      <h2>
        {met.rule} <small>{met.algorithm}</small>
      </h2>
      <p class="parts">
        {parts.length === 0 && callers.everybody}
        {parts.map(([name, part]) => (
          <span key={name} class="part">
            {name} = <PartText part={part} />
          </span>
        ))}
      </p>
      {met.decisions.map((decision, index) => (
        <DecisionLine key={`${index}-${decision.periodMs}`} decision={decision} />
      ))}
      {met.estimate !== undefined && <Found estimate={met.estimate} />}
      {met.limitFrom !== undefined && <p class="leased">{viewMessages.value.terms.current(met.limitFrom)}</p>}
      {met.credit !== undefined && <p class="leased">{viewMessages.value.terms.credit(formatNumber(met.credit))}</p>}
      {met.leased !== undefined && <p class="leased">{texts.leased(formatNumber(met.leased))}</p>}
    </li>
  )
}

/** Shows the findings of an adaptive rule for this caller. */
function Found({ estimate }: { estimate: Estimate }): JSX.Element {
  const { explain: texts, overload } = viewMessages.value
  const { limit, inFlight, latencyMs, baseMs, perSecond, limiting } = estimate
  const isKnown = perSecond > 0
  const time = (ms: number) => (isKnown ? formatLatency(ms) : overload.unknown)
  return (
    <>
      <p class="leased">
        {texts.found}
        {isKnown && ` ${limiting ? overload.limiting : overload.open}`}
      </p>
      <dl class="facts found">
        {(
          [
            ['limit', overload.limit, formatNumber(limit)],
            ['in-flight', overload.inFlight, formatNumber(inFlight)],
            ['latency', overload.latency, time(latencyMs)],
            ['base', overload.base, time(baseMs)],
          ] as const
        ).map(([name, title, text]) => (
          <div key={name} data-fact={name}>
            <dt>{title}</dt>
            <dd>{text}</dd>
          </div>
        ))}
      </dl>
    </>
  )
}

function DecisionLine({ decision }: { decision: Decision }): JSX.Element {
  const { explain: texts } = viewMessages.value
  const { limit, periodMs, calendar, remaining, allowed, shadow, retryAfterMs } = decision
  const used = limit > 0 ? Math.min(1, Math.max(0, 1 - remaining / limit)) : 1
  const saying = allowed ? texts.wouldPass : shadow ? texts.wouldShadow : texts.wouldRefuse
  return (
    <p class={`decision ${allowed ? 'allowed' : shadow ? 'shadowRefused' : 'refused'}`}>
      <span class="bar" aria-hidden="true">
        <span style={{ width: `${(used * 100).toFixed(1)}%` }} />
      </span>
      <span>
        {texts.left(formatNumber(remaining), limitText({ limits: [{ count: limit, periodMs, unit: calendar }] }))}
      </span>
      <b>{saying}</b>
      {!allowed && typeof retryAfterMs === 'number' && retryAfterMs > 0 && (
        <span>{texts.again(formatDuration(retryAfterMs))}</span>
      )}
    </p>
  )
}

function PartText({ part }: { part: KeyPart }): JSX.Element {
  const { explain: texts } = viewMessages.value
  if (part.countedBy === 'absence') return <i>{texts.absent}</i>
  return (
    <>
      <KeyText text={part.value} />
      {part.countedBy === 'digest' && <i> ({texts.digest})</i>}
      {part.countedBy === 'address' && <i> ({texts.address})</i>}
    </>
  )
}
