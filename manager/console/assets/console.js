// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// The server renders each page, and sends its content again when that changes.
"use strict";
{
  const main = document.getElementById("main"), lost = document.getElementById("lost");
  let stream = null;
  const close = () => {
    if (stream) stream.close();
    stream = null;
  };
  const open = () => {
    close();
    // A browser has few connections to one server: a page that nobody sees gives its own back.
    if (document.hidden) return;
    const mine = stream = new EventSource(location.href);
    let failures = 0;
    mine.onmessage = (e) => {
      failures = 0;
      lost.hidden = true;
      Idiomorph.morph(main, e.data, {
        morphStyle: "innerHTML", ignoreActiveValue: true,
        callbacks: { beforeNodeMorphed: (node) => !(node.matches && node.matches("form.filter")) },
      });
    };
    mine.onerror = () => {
      if (mine !== stream) return;
      // An answer ends now and then, and the browser asks again.
      if (lost.hidden && ++failures > 1) {
        lost.querySelector("time").textContent = new Date().toLocaleTimeString();
        lost.hidden = false;
      }
      if (mine.readyState === EventSource.CLOSED) setTimeout(() => { if (mine === stream) open(); }, 2000);
    };
  };
  open();
  addEventListener("pagehide", close);
  addEventListener("pageshow", (e) => { if (e.persisted) open(); });
  document.addEventListener("visibilitychange", () => { if (document.hidden) close(); else open(); });
  addEventListener("keydown", (e) => {
    if (e.key === "/" && !e.target.closest("input, select, textarea")) {
      e.preventDefault();
      document.querySelector("header input").focus();
    }
  });
}
