/** `OPTIONS *`, and other methods with that target, which no client library forwards. */
export const optionsAsterisk = {
  name: 'OPTIONS *',
  connections: 8,
  steps: index => [
    {
      write: `${['OPTIONS', 'OPTIONS', 'GET', 'POST'][index % 4]} * HTTP/1.1\r\nHost: fuzz.example\r\n\r\n`,
      times: 64,
    },
    { pause: 200 },
    'close',
  ],
}
