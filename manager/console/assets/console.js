// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// The server renders each page, and sends its content again when that changes.
"use strict";
{
  const main = document.getElementById("main"), lost = document.getElementById("lost");
  let stream;
  const open = () => {
    stream = new EventSource(location.href);
    stream.onopen = () => { lost.hidden = true; };
    stream.onmessage = (e) => {
      lost.hidden = true;
      Idiomorph.morph(main, e.data, { morphStyle: "innerHTML", ignoreActiveValue: true });
    };
    stream.onerror = () => {
      if (lost.hidden) {
        lost.querySelector("time").textContent = new Date().toLocaleTimeString();
        lost.hidden = false;
      }
      if (stream.readyState === EventSource.CLOSED) setTimeout(open, 2000);
    };
  };
  open();
  addEventListener("pagehide", () => stream.close());
  addEventListener("pageshow", (e) => { if (e.persisted) open(); });
  addEventListener("keydown", (e) => {
    if (e.key === "/" && !e.target.closest("input, select, textarea")) {
      e.preventDefault();
      document.querySelector("header input").focus();
    }
  });
}
